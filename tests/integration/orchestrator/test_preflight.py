"""The servers that the tests run on are usable; with a wrong password they are not."""

import pytest
from psycopg.conninfo import make_conninfo

from orchestrator.preflight import ServerUnusable, check_postgres, check_redis
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
