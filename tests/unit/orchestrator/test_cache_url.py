"""Runs are let onto a cache over TCP, behind a password, and never onto the broker."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from orchestrator.cache_url import cache_url

BROKER = "redis://:pw@broker.example.com:6379/0"


def refusal(value: str, broker: str = BROKER) -> str:
    with pytest.raises(ImproperlyConfigured) as refused:
        cache_url(value, broker=broker)
    message = str(refused.value)
    assert message.startswith("ISOLANE_CACHE_URL ")
    assert "hunter2" not in message
    return message


@pytest.mark.parametrize(
    "value",
    [
        "",
        "redis://:hunter2@cache.example.com",
        "rediss://admin:hunter2@cache.example.com:6380/0",
        "redis://:hunter2@broker.example.com:6380/",
        "redis://:hunter2@[2001:db8::1]:6379?db=0",
    ],
)
def test_a_server_of_its_own_will_do(value: str) -> None:
    assert cache_url(value, broker=BROKER) == value


@pytest.mark.parametrize(
    ("value", "broker"),
    [
        ("redis://:hunter2@broker.example.com:6379/0", BROKER),
        ("rediss://admin:hunter2@BROKER.example.com./", BROKER),
        ("redis://:hunter2@127.0.0.1:6379", "redis://localhost"),
        ("redis://:hunter2@localhost:6379", "redis://:pw@[::1]:6379/3"),
        ("redis://:hunter2@[::ffff:127.0.0.1]:6379", "redis://:pw@127.0.0.1/1"),
        ("redis://:hunter2@0.0.0.0", "redis:///0"),
        ("redis://:hunter2@[2001:DB8:0::1]:7000", "rediss://[2001:db8::1]:7000"),
    ],
)
def test_the_brokers_server_is_refused_under_every_name(value: str, broker: str) -> None:
    assert "is the server of REDIS_URL" in refusal(value, broker)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("unix://:hunter2@/run/cache.sock", "is a Unix socket"),
        ("redis+socket://:hunter2@/run/cache.sock", "is a Unix socket"),
        ("http://:hunter2@cache", "starts with 'http'"),
        ("redis://:hunter2@", "names no host"),
        ("redis://cache.example.com:6379/0", "has no password"),
        ("redis://admin@cache.example.com", "has no password"),
        ("redis://:hunter2@cache:many", "is not an address"),
        ("redis://:hunter2@[cache", "is not an address"),
        ("redis://:hunter2@cache:6379/1", "names a database other than 0"),
        ("redis://:hunter2@cache:6379?db=2", "names a database other than 0"),
    ],
)
def test_what_runs_cannot_use_is_refused(value: str, reason: str) -> None:
    assert reason in refusal(value)


def test_a_broker_behind_a_socket_is_another_server() -> None:
    value = "redis://:hunter2@127.0.0.1:6379"
    assert cache_url(value, broker="unix://:pw@/run/broker.sock") == value
