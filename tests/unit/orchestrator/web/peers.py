"""Connections without a network: what is decided about them is written down."""

from foundation.errors import IsolaneError
from orchestrator.web.connections import ClientConnection
from orchestrator.web.limits import WebLimits
from orchestrator.web.traffic import Traffic


def limits(**given: float) -> WebLimits:
    """Small ones."""
    small = {
        "connections": 4,
        "accepted": 4,
        "queued": 3,
        "streams": 1,
        "at_work": 1,
        "at_work_per_caller": 9,
    }
    return WebLimits(**{**small, **given})  # type: ignore[arg-type]


class Clock:
    """Time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class FakePeer:
    """Does what the protocol does, without I/O."""

    def __init__(self, traffic: Traffic, address: str = "a", caller: str = "") -> None:
        self.traffic = traffic
        self.connection = ClientConnection(peer=self, address=address, caller=caller or address)
        self.dropped = False
        self.refusal: IsolaneError | None = None
        self.begun = 0
        self.unread = 0
        traffic.opened(self.connection)

    def drop(self) -> None:
        self.dropped = True
        self.traffic.closed(self.connection)

    def refuse(self, error: IsolaneError) -> None:
        self.refusal = error
        self.traffic.refused(self.connection)

    def begin(self) -> None:
        self.begun += 1

    def unread_bytes(self) -> int:
        return self.unread

    def send(self, size: int = 10) -> "FakePeer":
        """A part of a request."""
        self.traffic.received(self.connection, size)
        return self

    def send_whole(self, size: int = 10) -> "FakePeer":
        """A whole request."""
        self.traffic.received(self.connection, size)
        if self.refusal is None:
            self.traffic.header_complete(self.connection)
            self.traffic.whole(self.connection)
        return self
