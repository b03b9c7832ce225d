"""resources.checks: levels, backends and options of RUNTIMES are checked without starting a runtime."""

from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from resources.checks import NOT_A_BACKEND, UNKNOWN_LEVEL, WRONG_OPTIONS

SHARED = "resources.runtimes.shared.SharedBackend"
STUB = "resources.runtimes.stub.StubBackend"
GOOD: dict[str, Any] = {"BACKEND": SHARED, "OPTIONS": {"size": 2}}
IDS = (UNKNOWN_LEVEL, NOT_A_BACKEND, WRONG_OPTIONS)


def found() -> list[tuple[str | None, str]]:
    return [(message.id, str(message.msg)) for message in run_checks() if message.id in IDS]


@pytest.mark.parametrize(
    "runtimes",
    [
        {"shared": GOOD},
        {"shared": GOOD, "process": {"BACKEND": STUB, "OPTIONS": {"script": {}}}},
    ],
)
def test_good_settings_pass(settings: Settings, runtimes: dict[str, Any]) -> None:
    assert found() == []
    settings.RUNTIMES = runtimes
    assert found() == []


@pytest.mark.parametrize(
    ("runtimes", "wanted", "part"),
    [
        ({}, UNKNOWN_LEVEL, "RUNTIMES is empty"),
        ({"solid": GOOD}, UNKNOWN_LEVEL, "'solid'; known are shared, process"),
        ({"shared": {}}, NOT_A_BACKEND, "cannot be imported"),
        ({"shared": {**GOOD, "BACKEND": "resources.nowhere.Backend"}}, NOT_A_BACKEND, "nowhere"),
        ({"shared": {**GOOD, "BACKEND": "resources.runtimes.shared.Nobody"}}, NOT_A_BACKEND, "Nobody"),
        (
            {"shared": {**GOOD, "BACKEND": "resources.runtimes.base.Availability"}},
            NOT_A_BACKEND,
            "is not a RuntimeBackend",
        ),
        ({"shared": {"BACKEND": SHARED}}, WRONG_OPTIONS, "size"),
        ({"shared": {**GOOD, "OPTIONS": {"size": 2, "colour": 1}}}, WRONG_OPTIONS, "colour"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_an_error(
    settings: Settings, runtimes: dict[str, Any], wanted: str, part: str
) -> None:
    settings.RUNTIMES = runtimes
    ((id_, message),) = found()
    assert id_ == wanted
    assert part in message
