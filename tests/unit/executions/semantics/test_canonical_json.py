"""executions.semantics.canonical_json: JSON reads the same before and after PostgreSQL has had it."""

import json
from typing import Any

import pytest

from executions.semantics.canonical_json import loads

VALUES = [
    {"zebra": 1, "a": {"y": [], "b": None}, "é": "ü"},
    [1e23, 1e16, 1.5e300, 123456789012345680.0, -1e23],
    [1e15, 0.1, 1e-7, 1.0, 2.5, -0.0, 5e-324],
    [0, 10**30, True, None, "", "1e23"],
]


@pytest.mark.parametrize("value", VALUES)
def test_what_is_read_is_written_as_it_was_read(value: Any) -> None:
    text = json.dumps(loads(json.dumps(value)))
    assert json.dumps(loads(text)) == text


def test_names_are_in_order() -> None:
    assert list(loads('{"b": 1, "a": {"d": 1, "c": 2}, "b": 3}')["a"]) == ["c", "d"]
    assert loads('{"b": 1, "a": 2, "b": 3}') == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e+23", 10**23), ("1e5", 100_000), ("1.5e3", 1500), ("1.0", 1.0), ("1e-07", 1e-7)],
)
def test_a_number_without_a_fraction_is_an_integer(text: str, number: float) -> None:
    found = loads(text)
    assert (found, type(found)) == (number, type(number))


def test_a_zero_has_no_sign() -> None:
    assert str(loads("-0.0")) == "0.0"
