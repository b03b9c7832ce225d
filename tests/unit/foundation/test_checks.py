"""foundation.checks: published sample values are errors with an id."""

from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from foundation.checks import SAMPLE_VALUE
from foundation.samples import ENCRYPTION_KEY


def found() -> list[str]:
    return [str(error.msg).partition(" ")[0] for error in run_checks() if error.id == SAMPLE_VALUE]


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
