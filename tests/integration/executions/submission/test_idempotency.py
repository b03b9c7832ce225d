import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from pytest_django import Settings
from redis.utils import str_if_bytes

from executions.submission import idempotency
from executions.submission.idempotency import MAX_SECONDS, TTL_SECONDS, Key, Seen, check, remember

ACME, GLOBEX = (Key(tenant_id=number, blueprint="flow", text="key") for number in (1, 2))


@pytest.fixture(autouse=True)
def _fresh_client() -> Iterator[None]:
    """A rest that one test caused must not reach the next."""
    idempotency._keys.cache_clear()
    yield
    idempotency._keys.cache_clear()


def test_only_what_is_remembered_is_a_duplicate_or_a_conflict(broker: "redis.Redis") -> None:
    assert check(ACME, "a") is Seen.NEW
    assert check(ACME, "a") is Seen.NEW  # looking remembers nothing
    remember(ACME, "a")
    assert check(ACME, "a") is Seen.DUPLICATE
    assert check(ACME, "b") is Seen.CONFLICT
    assert check(replace(ACME, text="other"), "a") is Seen.NEW


def test_the_newest_digest_counts(broker: "redis.Redis") -> None:
    remember(ACME, "a")
    remember(ACME, "b")
    assert check(ACME, "b") is Seen.DUPLICATE
    assert check(ACME, "a") is Seen.CONFLICT


def test_two_tenants_with_the_same_key_do_not_meet(broker: "redis.Redis") -> None:
    remember(ACME, "a")
    assert check(GLOBEX, "a") is Seen.NEW
    assert check(GLOBEX, "b") is Seen.NEW
    remember(GLOBEX, "b")
    assert check(ACME, "a") is Seen.DUPLICATE
    assert check(GLOBEX, "b") is Seen.DUPLICATE


def test_two_blueprints_with_the_same_key_do_not_meet(broker: "redis.Redis") -> None:
    remember(ACME, "a")
    assert check(replace(ACME, blueprint="other"), "b") is Seen.NEW


def test_a_key_is_kept_for_a_day_under_a_name_that_does_not_tell_it(broker: "redis.Redis") -> None:
    remember(replace(ACME, text="order 4711 of anna@example.com"), "a")
    (name,) = map(str_if_bytes, broker.keys("isolane:idempotency:*"))
    assert name.startswith("isolane:idempotency:1:")
    assert "4711" not in name
    assert "anna" not in name
    assert 0 < broker.ttl(name) <= TTL_SECONDS


def test_an_emptied_redis_is_asked_again_and_learns_the_script_again(
    broker: "redis.Redis",
) -> None:
    remember(ACME, "a")
    broker.flushall()
    broker.script_flush()
    assert check(ACME, "a") is Seen.NEW
    remember(ACME, "a")
    assert check(ACME, "a") is Seen.DUPLICATE


def test_a_name_that_holds_something_else_fails_open(broker: "redis.Redis") -> None:
    broker.lpush(ACME.name, "a")
    assert check(ACME, "a") is Seen.NEW


def test_redis_away_fails_open(settings: Settings, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    remember(ACME, "a")
    assert check(ACME, "a") is Seen.NEW


def test_a_redis_that_says_nothing_costs_a_bounded_time_once(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        began = time.monotonic()
        assert check(ACME, "a") is Seen.NEW
        lost = time.monotonic() - began
        # It waited for an answer, and not for longer than promised (twice that, as the machine is shared).
        assert MAX_SECONDS / 4 < lost < MAX_SECONDS * 2
        began = time.monotonic()
        assert [check(ACME, "a") for _ in range(50)] == [Seen.NEW] * 50
        assert time.monotonic() - began < lost
