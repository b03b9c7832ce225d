"""Reading the outcome of the tests from the guest's console. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trials.cgroup_v2.project import STATUS

_SUMMARY = re.compile(r"=+ (.* in [\d.]+s.*?) =+")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The outcome of one user's tests."""

    ok: bool
    text: str


def outcome_of(user: str, lines: Sequence[str]) -> Outcome:
    """Return the outcome for a user; tests that were all skipped have shown nothing."""
    summary = ""
    for line in lines:
        plain = _COLOUR.sub("", line)
        if found := _SUMMARY.fullmatch(plain):
            summary = found[1]
        if found := re.fullmatch(rf"{STATUS} (\w+) (\w*)", plain):
            if found[1] == user:
                ok = found[2] == "0" and " passed" in f" {summary}"
                return Outcome(ok=ok, text=f"{summary or 'no tests'}, exit status {found[2]}")
            summary = ""
    return Outcome(ok=False, text="no result")
