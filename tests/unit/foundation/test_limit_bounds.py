"""The ranges of a run's limits."""

from dataclasses import fields

import pytest

from foundation.limit_bounds import LIMIT_BOUNDS, Bounds, number
from isolane.limits import RunLimits


def test_every_limit_has_a_range() -> None:
    # The seconds are those that are left of a run's time, which has ranges of its own.
    assert {*LIMIT_BOUNDS, "seconds"} == {field.name for field in fields(RunLimits)}
    assert all(0 < bounds.least < bounds.most for bounds in LIMIT_BOUNDS.values())


@pytest.mark.parametrize("value", [1, 2, 8])
def test_a_number_in_the_range_is_allowed(value: int) -> None:
    assert Bounds(1, 8).allow(value)
    assert Bounds(1, 8, whole=False).allow(float(value))


@pytest.mark.parametrize("value", [0, 9, 2.0, 2.5, True, "2", None, float("nan"), float("inf")])
def test_anything_else_is_not(value: object) -> None:
    assert not Bounds(1, 8).allow(value)


@pytest.mark.parametrize("value", [0.9, 8.1, True, "2", None, float("nan"), float("inf")])
def test_nor_where_fractions_are_allowed(value: object) -> None:
    assert not Bounds(1, 8, whole=False).allow(value)


def test_a_range_is_told_in_words() -> None:
    assert str(Bounds(1, 8)) == "a whole number from 1 to 8"
    assert str(Bounds(0.5, 8, whole=False)) == "a number from 0.5 to 8"


@pytest.mark.parametrize(
    ("text", "read"),
    [("256", 256), ("0.5", 0.5), ("1e3", 1000.0), ("many", None), ("", None), ("9" * 5000, None)],
)
def test_a_number_is_read(text: str, read: float | None) -> None:
    assert number(text) == read
