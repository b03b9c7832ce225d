"""Findings of the verdict. Plain data."""

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """Kinds of broken promises; every report counts the first four."""

    LOST = "lost"  # a run that did not end
    AGAIN = "completed step ran again"
    SLOT = "slots held at the end"
    PROCESS = "processes left"
    TWICE = "ran twice"  # a step that may not, or two attempts at once
    UNKNOWN_START = "began without a claim"
    MISSING = "effect missing"  # a step succeeded, and the observer has no record of it
    ENDED_WRONG = "ended as it must not"
    EVENTS = "events out of order"
    FENCE = "stale write accepted"  # under an epoch that is over
    WORKER = "worker ended or did not come back"
    ORPHAN = "left behind"  # files, rows, messages


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One broken promise, with its run and step."""

    kind: FindingKind
    about: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.about}"
