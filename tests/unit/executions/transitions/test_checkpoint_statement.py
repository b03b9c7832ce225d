"""executions.transitions.checkpoint_statement: what an attempt has not left behind is not in the text."""

import pytest

from executions.transitions.checkpoint_statement import checkpoint_statement
from tests.product_statements import PARTS

NOTHING = dict.fromkeys(PARTS, False)
# What only this part brings into the text.
MARKS = {
    "logs": "executions_steplog",
    "costs": "executions_monthlycost",
    "variables": "sealed_variables =",
    "outputs": " outputs =",
    "asks": "question =",
    "claims": "'step.started'",
    "tracked": "executions_resourcerecord",
}


def test_most_attempts_leave_nothing() -> None:
    text = checkpoint_statement(**NOTHING).text
    assert [part for part, mark in MARKS.items() if mark in text] == []


@pytest.mark.parametrize("part", PARTS)
def test_one_part_alone(part: str) -> None:
    statement = checkpoint_statement(**{**NOTHING, part: True})
    assert [name for name, mark in MARKS.items() if mark in statement.text] == [part]
    assert set(statement.parameters) > set(checkpoint_statement(**NOTHING).parameters)


def test_it_is_composed_once() -> None:
    assert checkpoint_statement(**NOTHING) is checkpoint_statement(**NOTHING)
