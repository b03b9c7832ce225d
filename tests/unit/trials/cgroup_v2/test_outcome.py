"""trials.cgroup_v2: the outcome of the guest's tests is read from its console, and nothing shown is no success."""

import pytest

from tests.accounts import ONLY_ROOT
from trials.cgroup_v2.outcome import EXPECTED_SKIP, Outcome, outcome_of
from trials.cgroup_v2.project import STATUS

PASSED = "\x1b[32m======= \x1b[1m8 passed\x1b[0m, 1 skipped in 23.49s =======\x1b[0m"

AS_ROOT = f"SKIPPED [1] tests/integration/test_x.py:117: {ONLY_ROOT}"
NO_CGROUP = (
    "SKIPPED [8] tests/integration/conftest.py:36: no cgroup can be made here: v2: not mounted"
)


def test_passed_tests_are_a_success() -> None:
    lines = ["Linux", AS_ROOT, PASSED, f"{STATUS} isolane 0"]
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


def test_what_the_machine_lacks_is_no_success() -> None:
    found = outcome_of("isolane", [AS_ROOT, NO_CGROUP, PASSED, f"{STATUS} isolane 0"])
    assert not found.ok
    reason = "no cgroup can be made here: v2: not mounted"
    assert found.text.endswith(f"exit status 0, not to be skipped: {reason}")
    assert not outcome_of("root", [AS_ROOT, PASSED, f"{STATUS} root 0"]).ok


def test_what_one_user_skips_is_not_told_of_the_next() -> None:
    lines = [NO_CGROUP, PASSED, f"{STATUS} isolane 0", PASSED, f"{STATUS} root 0"]
    assert outcome_of("root", lines).ok


def test_the_expected_skip_is_that_of_the_tests() -> None:
    assert EXPECTED_SKIP == ONLY_ROOT
