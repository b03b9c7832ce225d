"""What became of one kind of attack, as it is counted while it goes on. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(kw_only=True)
class Tally:
    """Tries, and what they got: a status or a few words, by the kind of try."""

    tries: int = 0
    left_out: int = 0  # because too many were unanswered
    sent_bytes: int = 0
    most_open: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0  # from a try's begin to its end

    def note(self, kind: str, got: object, seconds: float) -> None:
        """One try has ended."""
        self.answers[f"{kind}: {got}"] += 1
        self.longest_s = max(self.longest_s, seconds)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "answers": dict(self.answers)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From JSON."""
        return cls(**{**values, "answers": Counter(values["answers"])})
