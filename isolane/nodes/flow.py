"""Nodes that steer the run."""

from datetime import UTC, datetime
from typing import Annotated

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import PAUSE_MAX_S, Code, StepError
from isolane.shapes import Limits


@node("flow.sleep", idempotent=True)
def flow_sleep(
    ctx: NodeContext,
    *,
    seconds: Annotated[float, Limits(minimum=0, maximum=PAUSE_MAX_S)] | None = None,
    until: str | None = None,
) -> dict[str, float]:
    """Let the run wait for some seconds, or until a time; meanwhile it holds no slot."""
    if (seconds is None) == (until is None):
        raise _refused("give exactly one of seconds and until")
    pause_s = seconds if seconds is not None else _seconds_until(until or "")
    try:
        ctx.pause(pause_s)
    except ValueError as error:
        raise _refused(str(error)) from None
    return {"seconds": pause_s}


def _seconds_until(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(f"until {text!r} is not a time in ISO 8601") from None
    if moment.tzinfo is None:
        raise _refused(f"until {text!r} has no time zone; add Z or an offset such as +02:00")
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _refused(reason: str) -> StepError:
    return StepError(Code.POLICY_VIOLATION, f"flow.sleep: {reason}")
