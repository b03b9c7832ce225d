"""Logs of the tests' own servers: every connection that ever was, not only those that the watcher saw."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

from orchestrator.norp.observed_servers import ObservedServer, OpenConnection, ServerSnapshot
from tests.customer import Customer
from tests.recorder import Recorder


class ConnectionLog(Protocol):
    """The connections that a server has logged."""

    def opened(self, execution_id: str) -> int:
        """Return how many connections this run ever had."""

    def closed(self, execution_id: str) -> int:
        """Return how many of them are closed."""


class PostgresLog:
    """Of the customer's PostgreSQL."""

    def __init__(self, customer: Customer) -> None:
        self._customer = customer

    def opened(self, execution_id: str) -> int:
        return self._lines(execution_id, "connection authorized")

    def closed(self, execution_id: str) -> int:
        return self._lines(execution_id, "disconnection")

    def _lines(self, execution_id: str, what: str) -> int:
        return sum(what in line for line in self._customer.log_lines(execution_id))


class RequestLog:
    """Of the recording HTTP server."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def opened(self, execution_id: str) -> int:
        return len(self._ports(execution_id))

    def closed(self, execution_id: str) -> int:
        return len(self._ports(execution_id) - self._recorder.open_ports)

    def _ports(self, execution_id: str) -> set[int]:
        return {request.client_port for request in self._recorder.asked(execution_id)}


class ObservedRecorder:
    """The recording HTTP server, observed as the suite observes others."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def snapshot(self) -> ServerSnapshot:
        is_open = self._recorder.open_ports
        asked = [
            request for request in self._recorder.asked("exec_") if request.client_port in is_open
        ]
        tags = {request.client_port: request.headers["user-agent"] for request in asked}
        connections = [OpenConnection(id=str(port), tag=tag, user="") for port, tag in tags.items()]
        return ServerSnapshot(connections=tuple(connections), credentials=())

    def keys_of(self, _execution_id: UUID) -> tuple[str, ...]:
        return ()


@contextmanager
def observed_recorder(recorder: Recorder) -> Iterator[ObservedServer]:
    """Observe it; there is nothing to close."""
    yield ObservedRecorder(recorder)
