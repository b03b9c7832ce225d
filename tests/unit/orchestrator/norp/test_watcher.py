"""The watcher at the far side, with a far side in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from orchestrator.norp import watcher as module
from orchestrator.norp.observed_servers import FarSide, FarSideAway, Link, Look, names
from orchestrator.norp.watcher import watching
from tests.waiting import wait_for

ONE, TWO = UUID(int=1), UUID(int=2)


class Memory:
    """What is there is what a test says."""

    def __init__(self) -> None:
        self.links: tuple[Link, ...] = ()
        self.issued: tuple[str, ...] = ()
        self.keys: tuple[str, ...] = ()
        self.looks = 0
        self.away = False

    def look(self) -> Look:
        if self.away:
            raise FarSideAway("gone fishing")
        self.looks += 1
        return Look(links=self.links, issued=self.issued)

    def entries(self, execution_id: UUID) -> tuple[str, ...]:
        return tuple(key for key in self.keys if names(key, execution_id))

    @contextmanager
    def opening(self) -> Iterator[FarSide]:
        yield self

    def looked_at(self) -> None:
        """Wait until it has been looked at, from beginning to end, since now."""
        before = self.looks
        wait_for(lambda: self.looks > before + 1, "a look")


def link(number: int, execution_id: UUID) -> Link:
    return Link(id=str(number), mark=f"exec_{execution_id}/1/acme", user="default")


def test_what_was_there_for_a_moment_is_remembered_by_run() -> None:
    far = Memory()
    with watching(far.opening()) as watcher:
        far.links, far.issued = (link(1, ONE), link(2, TWO)), (f"iso_{ONE.hex}_1_ab",)
        far.looked_at()
        far.links, far.issued = (), ()
        far.looked_at()
        assert [one.id for one in watcher.connections(ONE)] == ["1"]
        assert [one.id for one in watcher.connections(TWO)] == ["2"]
        assert watcher.issued(ONE) == (f"iso_{ONE.hex}_1_ab",)
        assert watcher.issued(TWO) == ()
        assert watcher.left(ONE) == ()
        assert watcher.gone_s(ONE) is not None


def test_a_connection_is_a_runs_by_its_user_too() -> None:
    far = Memory()
    far.links = (Link(id="7", mark="", user=f"exec:{ONE}:1:scratch"),)
    with watching(far.opening()) as watcher:
        far.looked_at()
        assert [one.id for one in watcher.connections(ONE)] == ["7"]


def test_what_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.1)
    far = Memory()
    far.links, far.issued = (link(1, ONE),), (f"exec:{ONE}:1:scratch",)
    far.keys = (f"exec:{ONE}:1:scratch:probe", f"exec:{TWO}:1:scratch:probe")
    with watching(far.opening()) as watcher:
        assert watcher.gone_s(ONE) is None
        assert watcher.left(ONE) == (f"exec:{ONE}:1:scratch", f"exec:{ONE}:1:scratch:probe")


def test_a_far_side_that_goes_away_is_said_and_not_taken_for_empty() -> None:
    far = Memory()
    with watching(far.opening()) as watcher:
        far.away = True

        def is_noticed() -> bool:
            try:
                watcher.check()
            except FarSideAway:
                return True
            return False

        wait_for(is_noticed, "the watcher to notice")
        with pytest.raises(FarSideAway, match="gone fishing"):
            watcher.gone_s(ONE)


def test_one_that_is_not_there_is_not_watched() -> None:
    far = Memory()
    far.away = True
    with pytest.raises(FarSideAway), watching(far.opening()):
        raise AssertionError("it was watched")
