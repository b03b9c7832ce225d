"""Records of connections and refusals, as a gate makes them."""

from datetime import UTC, datetime
from typing import Any

from resources.gate.record import ConnectionReason, ConnectionRecord

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_connection(host: str = "api.example.com", **fields: Any) -> ConnectionRecord:
    """A connection that has ended in order, unless said otherwise."""
    return ConnectionRecord(at=NOON, is_refusal=False, host=host, **{"port": 443, **fields})


def a_refusal(host: str = "evil.example.com", **fields: Any) -> ConnectionRecord:
    """A refused connection: no resource has this name, unless said otherwise."""
    said = {"port": 443, "reason": ConnectionReason.NOT_DECLARED, **fields}
    return ConnectionRecord(at=NOON, is_refusal=True, host=host, **said)
