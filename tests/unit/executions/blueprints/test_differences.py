"""executions.blueprints.differences: as difflib writes them, and given up where comparing takes too long."""

import difflib
import random

import pytest

from executions.blueprints.differences import unified
from foundation.errors import TooMuchToCheck

NAMES = ("flow@1", "flow@2")
CHANCE = random.Random(3)


def lines(count: int, kinds: int) -> list[str]:
    return [f"- {CHANCE.randrange(kinds)}\n" for _ in range(count)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []),
        (["a\n"], []),
        ([], ["a\n", "b\n"]),
        (["a\n", "b\n", "c\n"] * 5, ["a\n", "b\n", "c\n"] * 5),
        (lines(60, 20), lines(70, 20)),
        (["x\n"] * 300, ["x\n"] * 150 + ["y\n"] + ["x\n"] * 150),
    ],
)
def test_the_diff_is_difflibs(before: list[str], after: list[str]) -> None:
    assert unified(before, after, NAMES) == "".join(difflib.unified_diff(before, after, *NAMES))


def test_versions_that_differ_in_too_much_are_not_compared() -> None:
    with pytest.raises(TooMuchToCheck, match=r"flow@1 and flow@2 .* read both") as refused:
        unified(lines(38_000, 200), lines(38_000, 200), NAMES)
    assert refused.value.http_status == 422
