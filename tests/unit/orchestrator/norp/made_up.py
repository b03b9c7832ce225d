"""Runs that nobody ran, as an observer would have seen them."""

from typing import Any

from isolane.tags import tag
from orchestrator.norp.observations import LedgerEntry, ObservedConnection, RunSeen, Use

LEVEL = "shared"


def connection(
    run: int, number: int = 1, *, tenant: str = "acme", **changes: Any
) -> ObservedConnection:
    """A connection of the run with this number, marked as it should be."""
    mark = tag(tenant_id=tenant, execution_id=execution(run), epoch=1)
    values = {
        "id": f"c{run}-{number}",
        "mark": mark,
        "user": "u",
        "seen_from": 0.0,
        "seen_until": 1.0,
    }
    return ObservedConnection(**{**values, **changes})


def entry(run: int, step: str = "n1", ended: str = "disposed", **changes: Any) -> LedgerEntry:
    """The ledger's row of its handle."""
    values = {"resource_id": handle(run), "type": "cache", "epoch": 1, "seconds": 1.0}
    return LedgerEntry(step=step, ended=ended, **{**values, **changes})


def use(run: int, step: str = "n1", connection_id: str = "") -> Use:
    """What a node says of its handle."""
    return Use(step=step, resource_id=handle(run), connection_id=connection_id or f"c{run}-1")


def run_seen(number: int, *, tenant: str = "acme", **changes: Any) -> RunSeen:
    """A run that did everything right, but for these changes."""
    values = {
        "execution_id": execution(number),
        "tenant": tenant,
        "level": LEVEL,
        "state": "succeeded",
        "code": "",
        "uses": (use(number),),
        "ledger": (entry(number),),
        "connections": (connection(number, tenant=tenant),),
        "issued": (f"exec:{execution(number)}:1:scratch",),
        "left": (),
        "gone_s": 0.01,
    }
    return RunSeen(**{**values, **changes})


def execution(number: int) -> str:
    """The id of the run with this number."""
    return f"00000000-0000-4000-8000-{number:012}"


def handle(number: int) -> str:
    """The id of its handle."""
    return f"cache_{number:032x}"
