"""Nodes that ask people."""

from typing import Annotated

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import PAUSE_MAX_S, Code, StepError
from isolane.shapes import Limits
from isolane.text import MESSAGE_MAX

WEEK_S = 7 * 86_400.0


@node("human.approval", idempotent=True)
def human_approval(
    ctx: NodeContext,
    *,
    prompt: Annotated[str, Limits(min_length=1, max_length=MESSAGE_MAX)],
    expires_s: Annotated[float, Limits(above=0, maximum=PAUSE_MAX_S)] = WEEK_S,
) -> None:
    """Ask a person to approve or reject; meanwhile the run holds no slot."""
    try:
        ctx.ask(prompt, expires_s)
    except ValueError as error:
        raise StepError(Code.POLICY_VIOLATION, f"human.approval: {error}") from None
