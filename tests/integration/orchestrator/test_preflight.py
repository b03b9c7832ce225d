"""The servers that the tests run on are usable; with a wrong password they are not."""

import pytest
from psycopg.conninfo import make_conninfo

from orchestrator.preflight import ServerUnusable, check_login, check_postgres, check_redis
from tests.plugin import SERVERS


def test_servers_that_will_do(servers: None) -> None:
    check_postgres(SERVERS.login_url, "DATABASE_URL")
    check_redis(SERVERS.redis_url)


def test_a_wrong_password_is_one_line(servers: None) -> None:
    wrong = make_conninfo(SERVERS.login_url, password="hunter2")
    with pytest.raises(ServerUnusable, match=r"^DATABASE_URL: .* password .*failed") as postgres:
        check_postgres(wrong, "DATABASE_URL")
    with pytest.raises(ServerUnusable, match=r"^REDIS_URL: .* does not answer") as redis:
        check_redis(SERVERS.redis_url.replace(SERVERS.secrets.valkey_password, "hunter2"))
    for refused in (postgres, redis):
        assert "\n" not in str(refused.value)
        assert "hunter2" not in str(refused.value)


def test_a_login_role_must_be_able_to_log_in(servers: None) -> None:
    check_login(SERVERS.login_url, SERVERS.owner_url)
    wrong = make_conninfo(SERVERS.login_url, password="hunter2")
    with pytest.raises(ServerUnusable, match=r"^DATABASE_URL: .* password .*failed"):
        check_login(wrong, SERVERS.owner_url)


def test_a_login_role_that_the_migration_will_make_is_none_to_refuse(servers: None) -> None:
    later = make_conninfo(SERVERS.login_url, user="not_made_yet")
    check_login(later, SERVERS.owner_url)
    with pytest.raises(
        ServerUnusable, match=r"^DATABASE_URL: .*127\.0\.0\.1:1 .*Connection refused"
    ):
        check_login(make_conninfo(later, host="127.0.0.1", port=1), SERVERS.owner_url)
