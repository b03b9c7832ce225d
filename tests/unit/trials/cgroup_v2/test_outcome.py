"""trials.cgroup_v2: the outcome of the guest's tests is read from its console, and nothing shown is no success."""

import pytest

from trials.cgroup_v2.outcome import Outcome, outcome_of
from trials.cgroup_v2.project import STATUS

PASSED = "\x1b[32m======= \x1b[1m8 passed\x1b[0m, 1 skipped in 23.49s =======\x1b[0m"


def test_passed_tests_are_a_success() -> None:
    lines = ["Linux", PASSED, f"{STATUS} isolane 0"]
    text = "8 passed, 1 skipped in 23.49s, exit status 0"
    assert outcome_of("isolane", lines) == Outcome(ok=True, text=text)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [PASSED],
        [f"{STATUS} isolane 0"],
        [PASSED, f"{STATUS} isolane 1"],
        [PASSED, f"{STATUS} isolane KILL"],
        [PASSED, f"{STATUS} isolane "],
        [PASSED, f"{STATUS} root 0"],
        ["===== 8 skipped in 1.00s =====", f"{STATUS} isolane 0"],
        [PASSED, f"{STATUS} root 0", f"{STATUS} isolane 0"],
    ],
)
def test_anything_else_is_none(lines: list[str]) -> None:
    assert not outcome_of("isolane", lines).ok
