"""What a verdict finds. Plain data."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What was broken; the first four are what every report counts."""

    LOST = "lost"  # a run that did not end
    AGAIN = "completed step ran again"
    SLOT = "slots held at the end"
    PROCESS = "processes left"
    TWICE = "ran twice"  # a step that may not, or two attempts at once
    UNKNOWN_START = "began without a claim"
    MISSING = "effect missing"  # a step succeeded, and its judge knows nothing of it
    ENDED_WRONG = "ended as it must not"
    EVENTS = "events out of order"
    FENCE = "a ghost was let in"  # a write under an epoch that is over
    WORKER = "worker ended or did not come back"
    LEFT = "left behind"  # files, rows, messages


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line: what, and of which run and step."""

    kind: Kind
    about: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.about}"
