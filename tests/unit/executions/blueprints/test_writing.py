"""executions.blueprints.writing: the same content is the same text, and reading it gives the content back."""

from typing import Any

import pytest

from executions.blueprints.reading import parse
from executions.blueprints.writing import as_yaml, unified_diff

RESOURCES = {
    "b": {"scope": "step", "definition": "d", "type": "cache"},
    "a": {"definition": "e", "type": "model"},
}
STEP: dict[str, Any] = {
    "sensitive": ["é", "x"],
    "with": {"z": [{"b": 1, "a": None}], "a": "multi\nline  \n"},
    "recover": {"with": {"b": 1, "a": "${error.code}"}, "uses": "m"},
    "retry": {"then": "recover", "attempts": 2},
    "on_failure": "retry",
    "uses": "n",
    "key": "one",
}
FULL = {"steps": [STEP], "resources": RESOURCES, "labels": {"b": "2", "a": "1"}, "name": "flow"}


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_fields_come_in_the_order_of_the_schema_and_all_else_by_name() -> None:
    assert as_yaml(
        {"steps": [{"with": {"b": 1, "a": 2}, "uses": "n", "key": "k"}], "name": "f"}
    ) == ("name: f\nsteps:\n- key: k\n  uses: n\n  with:\n    a: 2\n    b: 1\n")


def test_the_order_in_which_it_is_stored_does_not_matter() -> None:
    assert as_yaml(FULL) == as_yaml(turned(FULL))


@pytest.mark.parametrize("name", ["flow", "1e3", "1e-7", "null", "2026-01-31", "on"])
def test_what_is_written_can_be_read(name: str) -> None:
    document = {**FULL, "name": name}
    assert parse(as_yaml(document)) == document


@pytest.mark.parametrize("value", [1e300, -1e-7, 1000.0, "1e300", "-1E+3", "1.5e+3"])
def test_a_number_and_a_text_that_looks_like_one_stay_what_they_are(value: Any) -> None:
    document = {"name": "f", "steps": [{"key": "k", "uses": "n", "with": {"x": value}}]}
    read = parse(as_yaml(document))["steps"][0]["with"]["x"]
    assert (type(read), read) == (type(value), value)


def test_a_value_twice_is_written_twice() -> None:
    shared = {"a": [1, 2]}
    document = {
        "name": "f",
        "steps": [{"key": "k", "uses": "n", "with": {"x": shared, "y": shared}}],
    }
    assert parse(as_yaml(document)) == document


def test_a_diff_shows_what_changed_and_nothing_else() -> None:
    changed = {**FULL, "steps": [{**STEP, "uses": "other"}]}
    lines = unified_diff(FULL, turned(changed), ("flow@1", "flow@2")).splitlines()
    assert lines[:2] == ["--- flow@1", "+++ flow@2"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-  uses: n", "+  uses: other"]
    assert unified_diff(FULL, turned(FULL), ("flow@1", "flow@1")) == ""
