"""foundation.checks: sample values, invalid keys and a cache on the broker's server are errors with ids."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.checks import run_checks
from pytest_django import Settings

from foundation.checks import CACHE_IS_BROKER, INVALID_KEY, NO_KEY, SAMPLE_VALUE
from foundation.samples import ENCRYPTION_KEY

BROKER = "redis://:pw@broker.example.com:6379/0"


def found() -> list[str]:
    return [str(error.msg).partition(" ")[0] for error in run_checks() if error.id == SAMPLE_VALUE]


def messages(wanted: str, *, deploy: bool = False) -> list[str]:
    checked = run_checks(include_deployment_checks=deploy)
    return [str(error.msg) for error in checked if error.id == wanted]


@pytest.mark.parametrize(
    ("setting", "value", "variable"),
    [
        ("SECRET_KEY", "change-me-to-fifty-or-more-random-characters", "SECRET_KEY"),
        ("ENCRYPTION_KEYS", ("x", ENCRYPTION_KEY), "ENCRYPTION_KEYS"),
        ("REDIS_URL", "redis://:change-me@broker/0", "REDIS_URL"),
        ("CACHE_URL", "redis://:change-me@cache/0", "ISOLANE_CACHE_URL"),
    ],
)
def test_a_sample_value_is_an_error(
    settings: Settings, setting: str, value: Any, variable: str
) -> None:
    assert found() == []
    setattr(settings, setting, value)
    assert found() == [variable]


def test_a_sample_password_of_the_database_is_an_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", "change-me")
    assert found() == ["DATABASE_URL"]


def test_a_process_without_a_signing_key_is_checked_too(settings: Settings) -> None:
    settings.SECRET_KEY = ""
    assert found() == []


# --- keys
def test_an_invalid_key_is_named_by_its_position_and_not_repeated(settings: Settings) -> None:
    assert messages(INVALID_KEY) == []
    good = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = (good, "hunter2", good + good)
    first, second = messages(INVALID_KEY)
    assert "key 2 is not" in first
    assert "key 3 is not" in second
    assert "hunter2" not in first


def test_without_a_key_only_a_deployment_is_refused(settings: Settings) -> None:
    assert messages(NO_KEY, deploy=True) == []
    settings.ENCRYPTION_KEYS = ()
    assert messages(NO_KEY) == []
    assert len(messages(NO_KEY, deploy=True)) == 1


# --- servers
@pytest.mark.parametrize(
    ("cache", "broker"),
    [
        ("", BROKER),
        ("redis://:pw@cache.example.com:6379/0", BROKER),
        ("redis://:pw@broker.example.com:6380", BROKER),
        ("redis://:pw@localhost:6379", ""),
        ("redis://:pw@localhost:6379", "unix:///run/broker.sock"),
    ],
)
def test_a_cache_server_of_its_own_will_do(settings: Settings, cache: str, broker: str) -> None:
    settings.CACHE_URL, settings.REDIS_URL = cache, broker
    assert messages(CACHE_IS_BROKER) == []


@pytest.mark.parametrize(
    ("cache", "broker"),
    [
        ("rediss://:pw@BROKER.example.com./", BROKER),
        ("redis://:pw@127.0.0.1", "redis://localhost:6379/3"),
        ("unix:///run/broker.sock", "unix:///run/broker.sock"),
    ],
)
def test_a_cache_on_the_brokers_server_is_an_error(
    settings: Settings, cache: str, broker: str
) -> None:
    settings.CACHE_URL, settings.REDIS_URL = cache, broker
    assert len(messages(CACHE_IS_BROKER)) == 1
