"""The servers that the tests run on are usable; with a wrong password they are not."""

import pytest
import redis
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import make_conninfo

from orchestrator.preflight import (
    ServerUnusable,
    check_cache,
    check_login,
    check_postgres,
    check_redis,
    external_servers,
)
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


def test_a_cache_that_will_do(servers: None) -> None:
    check_cache(SERVERS.cache_url, SERVERS.redis_url)


def test_the_broker_by_another_name_is_no_cache(servers: None) -> None:
    other_name = SERVERS.cache_url.replace("127.0.0.1", "localhost")
    with pytest.raises(ServerUnusable, match=r"^ISOLANE_CACHE_URL leads to .* REDIS_URL"):
        check_cache(SERVERS.cache_url, other_name)


def test_a_cache_that_lets_everybody_in_is_refused(run_cache: "redis.Redis") -> None:
    run_cache.acl_setuser("admin", enabled=True, passwords=["+hunter2hunter2"], commands=["+@all"])
    password = SERVERS.secrets.run_cache_password
    with_admin = SERVERS.cache_url.replace(f":{password}", "admin:hunter2hunter2")
    check_cache(with_admin, SERVERS.redis_url)
    run_cache.acl_setuser("default", enabled=True, nopass=True, keys=["*"], commands=["+@all"])
    try:
        with pytest.raises(
            ServerUnusable, match=r"^ISOLANE_CACHE_URL: .* no.* password"
        ) as refused:
            check_cache(with_admin, SERVERS.redis_url)
        assert "hunter2" not in str(refused.value)
    finally:
        run_cache.acl_setuser(
            "default", enabled=True, reset_passwords=True, passwords=[f"+{password}"]
        )
    check_cache(SERVERS.cache_url, SERVERS.redis_url)


def test_a_named_cache_and_a_workers_login_are_checked_with_the_other_servers(
    servers: None,
) -> None:
    named = {
        "DATABASE_URL": SERVERS.login_url,
        "DATABASE_OWNER_URL": SERVERS.owner_url,
        "REDIS_URL": SERVERS.redis_url,
    }
    assert external_servers(named) == named
    with_cache = {**named, "ISOLANE_CACHE_URL": SERVERS.cache_url}
    assert external_servers(with_cache) == with_cache
    with pytest.raises(ImproperlyConfigured, match=r"^ISOLANE_CACHE_URL is a Unix socket"):
        external_servers({**named, "ISOLANE_CACHE_URL": SERVERS.redis_url})
    with_worker = {**named, "DATABASE_WORKER_URL": SERVERS.worker_url}
    assert external_servers(with_worker) == with_worker
    wrong = make_conninfo(SERVERS.worker_url, password="wrong")
    with pytest.raises(ServerUnusable, match=r"^DATABASE_WORKER_URL: .* password .*failed"):
        external_servers({**named, "DATABASE_WORKER_URL": wrong})
