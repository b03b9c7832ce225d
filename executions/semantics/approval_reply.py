"""What a person answers. Pure."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalReply:
    """To the question of one step."""

    approved: bool
    by: str  # who answered
    comment: str = ""

    @property
    def output(self) -> dict[str, Any]:
        """What the step comes to."""
        return {"approved": self.approved, "by": self.by, "comment": self.comment}
