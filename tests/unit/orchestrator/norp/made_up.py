"""Made-up runs, as an observer would have seen them."""

from typing import Any

from isolane.tags import tag
from orchestrator.norp.observations import (
    ObservedConnection,
    ObservedRecord,
    ObservedRun,
    ObservedUse,
)

LEVEL = "shared"


def connection(
    run: int, number: int = 1, *, tenant: str = "acme", **changes: Any
) -> ObservedConnection:
    """A connection of the run with this number, tagged as it should be."""
    tagged = tag(tenant_id=tenant, execution_id=execution(run), epoch=1)
    values = {
        "id": f"c{run}-{number}",
        "tag": tagged,
        "user": "u",
        "seen_from": 0.0,
        "seen_until": 1.0,
    }
    return ObservedConnection(**{**values, **changes})


def record(run: int, step: str = "n1", ended: str = "disposed", **changes: Any) -> ObservedRecord:
    """The record of its handle."""
    values = {"resource_id": handle(run), "type": "cache", "epoch": 1, "seconds": 1.0}
    return ObservedRecord(step=step, ended=ended, **{**values, **changes})


def use(run: int, step: str = "n1", connection_id: str = "") -> ObservedUse:
    """A node's report of its handle."""
    return ObservedUse(
        step=step, resource_id=handle(run), connection_id=connection_id or f"c{run}-1"
    )


def observed_run(number: int, *, tenant: str = "acme", **changes: Any) -> ObservedRun:
    """A run that did everything right, but for these changes."""
    values = {
        "execution_id": execution(number),
        "tenant": tenant,
        "level": LEVEL,
        "state": "succeeded",
        "code": "",
        "uses": (use(number),),
        "records": (record(number),),
        "connections": (connection(number, tenant=tenant),),
        "credentials": (f"exec:{execution(number)}:1:scratch",),
        "left": (),
        "gone_s": 0.01,
    }
    return ObservedRun(**{**values, **changes})


def execution(number: int) -> str:
    """The id of the run with this number."""
    return f"00000000-0000-4000-8000-{number:012}"


def handle(number: int) -> str:
    """The id of its handle."""
    return f"cache_{number:032x}"
