"""executions.worker.clocks: a set of clocks whose order is not safe cannot be made."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
from django.conf import settings

from executions.worker import clocks as clocks_module
from executions.worker.clocks import DEFAULTS, ORDER, Clocks, clock_problems
from tests.unit.semantic_header import Module

NAMES = [field.name for field in fields(Clocks)]


def test_the_clocks_of_this_platform_are_safe() -> None:
    made = Clocks(lease=settings.LEASE_SECONDS, drain_grace=settings.DRAIN_GRACE_SECONDS)
    assert made == Clocks()
    assert made.renewal < made.resend < made.self_fence < made.lease
    assert made.probe < made.unsure < made.unreachable


def test_they_do_not_change() -> None:
    with pytest.raises(AttributeError):
        Clocks().lease = 1.0  # type: ignore[misc]  # that is the test


@pytest.mark.parametrize(("first", "second", "reason"), ORDER)
def test_each_rule_is_asserted_and_names_both(first: str, second: str, reason: str) -> None:
    for value in (DEFAULTS[second], DEFAULTS[second] + 1):
        with pytest.raises(ValueError, match=f"{first} .* must be less than {second} .*: {reason}"):
            replace(Clocks(), **{first: value})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_none_is_zero_or_negative(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"\b{name} \(.* s\) must be positive"):
        replace(Clocks(), **{name: value})


def test_the_rules_are_about_clocks_that_there_are() -> None:
    assert {name for first, second, _ in ORDER for name in (first, second)} <= set(NAMES)
    assert list(DEFAULTS) == NAMES


# --- for system checks
def test_good_settings_have_no_problems() -> None:
    assert clock_problems() == []
    assert clock_problems(lease=settings.LEASE_SECONDS) == []


def test_bad_settings_have_one_sentence_each() -> None:
    (problem,) = clock_problems(lease=8)
    assert problem == (
        "self_fence (10 s) must be less than lease (8 s): "
        "a worker stops itself before another one ends its placements"
    )
    assert len(clock_problems(lease=4)) == 3


def test_a_clock_that_does_not_exist_is_a_problem() -> None:
    assert clock_problems(lapse=1) == ["there is no clock 'lapse'"]


def test_it_imports_no_django() -> None:
    path = Path(clocks_module.__file__)
    imports = Module(path.read_text(encoding="utf-8"), "executions.worker.clocks").imports
    assert {name.partition(".")[0] for name in imports} == {"collections", "dataclasses"}
