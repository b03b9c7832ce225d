"""Counts of one kind of attack while it runs. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(kw_only=True)
class Tally:
    """Number of tries, and their answers (a status or a few words) by kind of try."""

    tries: int = 0
    left_out: int = 0  # while too many were unanswered
    sent_bytes: int = 0
    most_open: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0  # of one try

    def note(self, kind: str, got: object, seconds: float) -> None:
        """Count a try that has ended."""
        self.answers[f"{kind}: {got}"] += 1
        self.longest_s = max(self.longest_s, seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return a value for JSON."""
        return {**vars(self), "answers": dict(self.answers)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a tally from JSON."""
        return cls(**{**values, "answers": Counter(values["answers"])})
