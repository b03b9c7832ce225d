"""The record of one connection of a run, or of a refused one. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ConnectionReason(StrEnum):
    """The end of a connection, or the ground of a refusal; stored with the event."""

    # Ends
    CLOSED = "closed"  # by the run or the remote server, in order
    RESET = "reset"  # by the run in the middle, or by the remote server once the run had ended
    SERVER_RESET = "server_reset"  # by the remote server, in the middle
    RUN_ENDED = "run_ended"  # open when the runtime ended
    IDLE = "idle"  # nothing was sent for too long
    BYTES = "bytes"  # the run has sent and received all that it may
    # Refusals
    NOT_DECLARED = "not_declared"  # no resource of the run has this name
    ADDRESS_REFUSED = "address_refused"  # the address is not allowed
    CONNECTIONS = "connections"  # the run has too many open
    UNREACHABLE = "unreachable"  # the remote server did not accept the connection in time
    CERTIFICATE = "certificate"  # the remote server did not prove its name
    LOGIN = "login"  # the remote server refused the login
    NOT_ALLOWED = "not_allowed"  # the run asked for something that the resource does not give
    PROTOCOL = "protocol"  # one side does not speak the resource's protocol


# Ends of a connection that has carried nothing.
REFUSALS = frozenset({
    ConnectionReason.NOT_DECLARED, ConnectionReason.ADDRESS_REFUSED, ConnectionReason.CONNECTIONS,
    ConnectionReason.UNREACHABLE, ConnectionReason.CERTIFICATE, ConnectionReason.LOGIN, ConnectionReason.NOT_ALLOWED,
    ConnectionReason.PROTOCOL,
})  # fmt: skip


# What nobody needs to be told of: the others are worth a word where a step fails.
ORDINARY = frozenset({ConnectionReason.CLOSED, ConnectionReason.RESET, ConnectionReason.RUN_ENDED})
# What also a broker cannot tell its program, which sees a connection that breaks or a name that is not there.
SILENT = frozenset({
    ConnectionReason.NOT_DECLARED, ConnectionReason.CONNECTIONS, ConnectionReason.IDLE, ConnectionReason.BYTES,
    ConnectionReason.SERVER_RESET,
})  # fmt: skip


class ConnectionEnded(Exception):
    """A connection that cannot go on; the message names no secret and is for operators."""

    def __init__(self, reason: ConnectionReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.has_carried = False  # anything before: then it is no refusal, whatever the reason


@dataclass(frozen=True, kw_only=True)
class ConnectionRecord:
    """One connection, without its contents."""

    at: datetime
    is_refusal: bool  # nothing was carried
    host: str  # as the run named it
    port: int  # 0 for a name that was only looked up
    definition: str = ""  # of the resource; empty if none has it
    sent: int = 0  # bytes, by the run
    received: int = 0
    seconds: float = 0.0
    reason: ConnectionReason = ConnectionReason.CLOSED
    has_broker: bool = False

    @property
    def is_fault(self) -> bool:
        """Say whether it may be why a step has failed."""
        return self.reason not in ORDINARY

    @property
    def is_told(self) -> bool:
        """Say whether the program was told the reason, by a broker's answer."""
        return self.has_broker and self.reason not in SILENT
