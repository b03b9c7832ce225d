"""Nodes that ask people."""

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import Code, StepError

WEEK_S = 7 * 86_400.0


@node("human.approval", idempotent=True)
def human_approval(ctx: NodeContext, *, prompt: str, expires_s: float = WEEK_S) -> None:
    """Ask a person to approve or reject; meanwhile the run holds no slot."""
    try:
        ctx.ask(prompt, expires_s)
    except ValueError as error:
        raise StepError(Code.POLICY_VIOLATION, f"human.approval: {error}") from None
