"""A person's answer to a question. Pure."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalReply:
    """The answer to one step's question."""

    approved: bool
    by: str  # the person
    comment: str = ""

    @property
    def output(self) -> dict[str, Any]:
        """The output of the step that asked."""
        return {"approved": self.approved, "by": self.by, "comment": self.comment}
