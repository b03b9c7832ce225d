"""Reading the outcome of the tests from the guest's console. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trials.cgroup_v2.project import STATUS

# What a test needs that an ordinary user cannot give; root runs the same tests. Any other skip is a missing part.
EXPECTED_SKIP = "only root can become another user, and we are an ordinary one"
_SKIP = re.compile(r"SKIPPED \[\d+\] [^:]+(?::\d+)?: (.*)")
_SUMMARY = re.compile(r"=+ (.* in [\d.]+s.*?) =+")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The outcome of one user's tests."""

    ok: bool
    text: str


def outcome_of(user: str, lines: Sequence[str]) -> Outcome:
    """Return the outcome for a user; tests that were skipped have shown nothing."""
    summary, skips = "", set[str]()
    for line in lines:
        plain = _COLOUR.sub("", line)
        if found := _SUMMARY.fullmatch(plain):
            summary = found[1]
        if found := _SKIP.fullmatch(plain):
            skips.add(found[1])
        if found := re.fullmatch(rf"{STATUS} (\w+) (\w*)", plain):
            if found[1] == user:
                return _judged(found[2], summary, skips - _expected(user))
            summary, skips = "", set()
    return Outcome(ok=False, text="no result")


def _expected(user: str) -> set[str]:
    return set() if user == "root" else {EXPECTED_SKIP}


def _judged(status: str, summary: str, skips: set[str]) -> Outcome:
    text = f"{summary or 'no tests'}, exit status {status}"
    if skips:
        text += f", not to be skipped: {'; '.join(sorted(skips))}"
    return Outcome(ok=status == "0" and " passed" in f" {summary}" and not skips, text=text)
