"""tenants.statement: names, parameters by number, parts put together, and rows by name."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest

from tenants.statement import Statement, compose, named, numbered, text_set


class CountRow(NamedTuple):
    """A row of two columns."""

    first: int
    second: str


# --- parameters
def test_parameters_are_numbered_in_the_order_in_which_they_first_stand() -> None:
    text, names = numbered("SELECT %(b)s::int, %(a)s::text, %(b)s::int + 1")
    assert text == "SELECT $1::int, $2::text, $1::int + 1"
    assert names == ("b", "a")


def test_a_statement_may_have_none() -> None:
    assert numbered("SELECT 1") == ("SELECT 1", ())


@pytest.mark.parametrize("statement", ["SELECT %s", "SELECT 1 %% 2", "SELECT %(a)t"])
def test_anything_else_with_a_percent_sign_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="nothing else with %"):
        numbered(statement)


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (("a",), r"counted: declared are \['a'\], in its text are \['a', 'b'\]"),
        (("a", "b", "c"), r"declared are \['a', 'b', 'c'\], in its text are \['a', 'b'\]"),
        ((), r"declared are \[\], in its text are \['a', 'b'\]"),
    ],
)
def test_declared_parameters_are_those_of_the_text(declared: tuple[str, ...], shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        Statement("counted", "SELECT %(b)s, %(a)s", parameters=declared, row=CountRow)


def test_they_are_declared_in_any_order_and_kept_in_that_of_the_text() -> None:
    statement = Statement("counted", "SELECT %(b)s, %(a)s", parameters=("a", "b"), row=CountRow)
    assert statement.parameters == ("b", "a")
    assert statement.text == "SELECT /* isolane:counted */ $1, $2"


# --- names
@pytest.mark.parametrize("name", ["", "Claim", "claim step", "claim-step", "1st", "claim*/"])
def test_a_name_is_snake_case(name: str) -> None:
    with pytest.raises(ValueError, match="snake case"):
        Statement(name, "SELECT 1 AS first", row=CountRow)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT 1", "SELECT /* isolane:x */ 1"),
        ("\n  WITH a AS (SELECT 1)\nSELECT", "WITH /* isolane:x */ a AS (SELECT 1)\nSELECT"),
        ("UPDATE t SET select = 1", "UPDATE /* isolane:x */ t SET select = 1"),
    ],
)
def test_the_name_stands_behind_the_first_word(text: str, shown: str) -> None:
    assert named("x", text) == shown


# --- rows
def columns(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(name=name) for name in names]


@pytest.mark.parametrize("found", [("second", "first"), ("first",), ("first", "second", "third")])
def test_a_row_whose_fields_are_not_the_columns_is_refused(found: tuple[str, ...]) -> None:
    statement = Statement("counted", "SELECT 1", row=CountRow)
    with pytest.raises(
        TypeError, match=r"counted: the fields of CountRow are .*'second'\), its columns are"
    ):
        statement.compare_columns(columns(*found))
    assert not statement.columns_compared


def test_columns_that_are_the_fields_are_compared_once() -> None:
    statement = Statement("counted", "SELECT 1", row=CountRow)
    statement.compare_columns(columns("first", "second"))
    assert statement.columns_compared


# --- putting together
def test_parts_are_put_together() -> None:
    assert compose("a AS (SELECT 1)", "\nb AS (SELECT 2)\n", then="\nSELECT * FROM a, b") == (
        "WITH a AS (SELECT 1),\nb AS (SELECT 2)\nSELECT * FROM a, b"
    )


def test_constants_as_an_array() -> None:
    assert text_set(["a", "b"]) == "ARRAY['a', 'b']::text[]"
