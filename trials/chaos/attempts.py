"""The attempts that have failed, as a run's events tell. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trials.chaos.rows import EventRow


@dataclass(frozen=True, kw_only=True)
class Failed:
    """One attempt of one step, or of its recovery node."""

    step: str
    epoch: int
    attempt: int
    code: str
    recovering: bool


def failed_attempts(events: Sequence[EventRow]) -> Iterator[Failed]:
    """Those of one run, its events in their order."""
    epochs: dict[str, int] = {}
    recovering: set[str] = set()
    for event in events:
        if event.kind == "step.started":
            epochs[event.step] = int(event.data["epoch"])
        code = event.data.get("code")
        if event.kind in {"step.failed", "step.retrying", "step.cancelled"} and code:
            yield Failed(
                step=event.step,
                epoch=epochs.get(event.step, 0),
                attempt=int(event.data.get("attempt", 0)),
                code=str(code),
                recovering=event.step in recovering,
            )
        if event.kind == "step.retrying" and event.data.get("recovering"):
            recovering.add(event.step)
