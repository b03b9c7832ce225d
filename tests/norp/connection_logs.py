"""Far sides of the tests' own, and the books that they keep: every connection that ever was, not only those seen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

from orchestrator.norp.observed_servers import FarSide, Link, Look
from tests.customer import Customer
from tests.recorder import Recorder


class Books(Protocol):
    """What a far side has written down."""

    def opened(self, execution_id: str) -> int:
        """How many connections of this run there ever were."""

    def closed(self, execution_id: str) -> int:
        """How many of them are closed."""


class ServerLog:
    """Of the customer's PostgreSQL."""

    def __init__(self, customer: Customer) -> None:
        self._customer = customer

    def opened(self, execution_id: str) -> int:
        return self._lines(execution_id, "connection authorized")

    def closed(self, execution_id: str) -> int:
        return self._lines(execution_id, "disconnection")

    def _lines(self, execution_id: str, what: str) -> int:
        return sum(what in line for line in self._customer.log_lines(execution_id))


class Requests:
    """Of the recording HTTP server."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def opened(self, execution_id: str) -> int:
        return len(self._ports(execution_id))

    def closed(self, execution_id: str) -> int:
        return len(self._ports(execution_id) - self._recorder.open_ports)

    def _ports(self, execution_id: str) -> set[int]:
        return {request.client_port for request in self._recorder.asked(execution_id)}


class RecorderSide:
    """The recording HTTP server, looked at as the suite looks at others."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def look(self) -> Look:
        is_open = self._recorder.open_ports
        asked = [
            request for request in self._recorder.asked("exec_") if request.client_port in is_open
        ]
        marks = {request.client_port: request.headers["user-agent"] for request in asked}
        links = [Link(id=str(port), mark=mark, user="") for port, mark in marks.items()]
        return Look(links=tuple(links), issued=())

    def entries(self, _execution_id: UUID) -> tuple[str, ...]:
        return ()


@contextmanager
def recorder_side(recorder: Recorder) -> Iterator[FarSide]:
    """Look at it; there is nothing to close."""
    yield RecorderSide(recorder)
