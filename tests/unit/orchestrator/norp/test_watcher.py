"""orchestrator.norp.watcher, with a server in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from orchestrator.norp import watcher as module
from orchestrator.norp.observed_servers import (
    ObservedServer,
    OpenConnection,
    RemoteServerAway,
    ServerSnapshot,
    is_named_after,
)
from orchestrator.norp.watcher import watching
from tests.waiting import wait_for

ONE, TWO = UUID(int=1), UUID(int=2)


class Memory:
    """A server whose state the test sets."""

    def __init__(self) -> None:
        self.connections: tuple[OpenConnection, ...] = ()
        self.credentials: tuple[str, ...] = ()
        self.keys: tuple[str, ...] = ()
        self.snapshots = 0
        self.away = False

    def snapshot(self) -> ServerSnapshot:
        if self.away:
            raise RemoteServerAway("gone fishing")
        self.snapshots += 1
        return ServerSnapshot(connections=self.connections, credentials=self.credentials)

    def keys_of(self, execution_id: UUID) -> tuple[str, ...]:
        return tuple(key for key in self.keys if is_named_after(key, execution_id))

    @contextmanager
    def observe(self) -> Iterator[ObservedServer]:
        yield self

    def observed(self) -> None:
        """Wait until a whole snapshot was taken since now."""
        before = self.snapshots
        wait_for(lambda: self.snapshots > before + 1, "a snapshot")


def connection(number: int, execution_id: UUID) -> OpenConnection:
    return OpenConnection(id=str(number), tag=f"exec_{execution_id}/1/acme", user="default")


def test_what_was_there_for_a_moment_is_remembered_by_run() -> None:
    server = Memory()
    with watching(server.observe()) as watcher:
        server.connections, server.credentials = (
            (connection(1, ONE), connection(2, TWO)),
            (f"iso_{ONE.hex}_1_ab",),
        )
        server.observed()
        server.connections, server.credentials = (), ()
        server.observed()
        assert [one.id for one in watcher.connections(ONE)] == ["1"]
        assert [one.id for one in watcher.connections(TWO)] == ["2"]
        assert watcher.credentials(ONE) == (f"iso_{ONE.hex}_1_ab",)
        assert watcher.credentials(TWO) == ()
        assert watcher.left(ONE) == ()
        assert watcher.gone_s(ONE) is not None


def test_a_connection_is_a_runs_by_its_user_too() -> None:
    server = Memory()
    server.connections = (OpenConnection(id="7", tag="", user=f"exec:{ONE}:1:scratch"),)
    with watching(server.observe()) as watcher:
        server.observed()
        assert [one.id for one in watcher.connections(ONE)] == ["7"]


def test_what_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.1)
    server = Memory()
    server.connections, server.credentials = (connection(1, ONE),), (f"exec:{ONE}:1:scratch",)
    server.keys = (f"exec:{ONE}:1:scratch:probe", f"exec:{TWO}:1:scratch:probe")
    with watching(server.observe()) as watcher:
        assert watcher.gone_s(ONE) is None
        assert watcher.left(ONE) == (f"exec:{ONE}:1:scratch", f"exec:{ONE}:1:scratch:probe")


def test_a_server_that_goes_away_is_reported_and_not_taken_for_empty() -> None:
    server = Memory()
    with watching(server.observe()) as watcher:
        server.away = True

        def is_noticed() -> bool:
            try:
                watcher.check()
            except RemoteServerAway:
                return True
            return False

        wait_for(is_noticed, "the watcher to notice")
        with pytest.raises(RemoteServerAway, match="gone fishing"):
            watcher.gone_s(ONE)


def test_one_that_is_not_there_is_not_watched() -> None:
    server = Memory()
    server.away = True
    with pytest.raises(RemoteServerAway), watching(server.observe()):
        raise AssertionError("it was watched")
