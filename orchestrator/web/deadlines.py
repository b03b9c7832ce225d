"""Deadlines of connections. Pure."""

from orchestrator.web.connections import ClientConnection, Phase
from orchestrator.web.limits import WebLimits


def overdue(connection: ClientConnection, now: float, limits: WebLimits) -> bool:
    """Return True if the connection has used up its time in its phase."""
    spent = now - connection.since
    stalled = now - connection.progress > limits.stalled_seconds
    match connection.phase:
        case Phase.HEADER:
            return spent > limits.header_seconds
        case Phase.BODY:
            return _body_overdue(connection, spent, limits)
        case Phase.QUEUED:
            return spent > limits.queue_seconds
        case Phase.UNREAD:
            return stalled or spent > limits.answer_seconds
        case Phase.AT_WORK | Phase.STREAM:  # a limit for the caller, not for the application
            return stalled and connection.unread > 0
        case Phase.IDLE:
            return spent > limits.idle_seconds
        case Phase.CLOSING:
            return spent > limits.closing_seconds


def _body_overdue(connection: ClientConnection, spent: float, limits: WebLimits) -> bool:
    if spent > limits.body_seconds:
        return True
    too_slow = connection.body < spent * limits.body_bytes_per_second
    return spent > limits.body_first_seconds and too_slow
