"""Failed attempts, read from the events of a run. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trials.chaos.rows import EventRow


@dataclass(frozen=True, kw_only=True)
class FailedAttempt:
    """One attempt of a step, or of its recovery node."""

    step: str
    epoch: int
    attempt: int
    code: str
    recovering: bool


def failed_attempts(events: Sequence[EventRow]) -> Iterator[FailedAttempt]:
    """Yield the failed attempts of one run; its events are in order."""
    epochs: dict[str, int] = {}
    recovering: set[str] = set()
    for event in events:
        if event.kind == "step.started":
            epochs[event.step] = int(event.data["epoch"])
        code = event.data.get("code")
        if event.kind in {"step.failed", "step.retrying", "step.cancelled"} and code:
            yield FailedAttempt(
                step=event.step,
                epoch=epochs.get(event.step, 0),
                attempt=int(event.data.get("attempt", 0)),
                code=str(code),
                recovering=event.step in recovering,
            )
        if event.kind == "step.retrying" and event.data.get("recovering"):
            recovering.add(event.step)
