"""resources.runtimes.pool: slots, with runners that do nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from resources.runtimes.base import PoolExhaustedError, RuntimeStartError
from resources.runtimes.pool import RunnerPool
from resources.runtimes.shared_runner import SharedRunner
from tests.waiting import wait_for


class IdleChild:
    """A runner that does nothing, and is clean."""

    runs = 1
    grown_mb = 0.0

    def __init__(self) -> None:
        self.is_over = False

    def ended(self) -> bool:
        return self.is_over

    def wipe(self) -> bool:
        return True

    def kill(self) -> None:
        self.is_over = True

    def dispose(self) -> bool:
        self.kill()
        return True


class Begin:
    """Forks a runner when it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.may.set()
        self.waiting = threading.Event()

    def __call__(self) -> SharedRunner:
        self.waiting.set()
        assert self.may.wait(10)
        return cast("SharedRunner", IdleChild())


def a_pool(begin: Begin) -> RunnerPool:
    return RunnerPool(level="shared", size=2, idle_mb=100, begin=begin)


def test_a_slow_fork_keeps_nobody_from_giving_back() -> None:
    pool = a_pool(begin := Begin())
    first = pool.take(1)
    begin.may.clear()
    begin.waiting.clear()
    with ThreadPoolExecutor(1) as thread:
        second = thread.submit(pool.take, 2)
        assert begin.waiting.wait(10)
        with pytest.raises(PoolExhaustedError):  # its slot is taken already
            pool.take(3)
        pool.give_back(first, 1, clean=True)
        assert pool.take(1) is first
        begin.may.set()
        assert second.result(10) is not first
    assert len(pool.busy) == 2


def test_a_failed_fork_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = a_pool(Begin())

    def fail() -> SharedRunner:
        raise RuntimeStartError("no more processes")

    with monkeypatch.context() as patch:
        patch.setattr(pool, "_begin_one", fail)
        for _ in range(3):
            with pytest.raises(RuntimeStartError, match="no more processes"):
                pool.take(1)
    assert {pool.take(1), pool.take(2)} == pool.busy


def test_without_room_for_another_one_the_idle_ones_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = a_pool(begin := Begin())
    idle = pool.take(1)
    pool.give_back(idle, 1, clean=True)

    def begin_with_room() -> SharedRunner:
        if not idle.ended():
            raise RuntimeStartError("the zygote cannot fork: Resource temporarily unavailable")
        return begin()

    monkeypatch.setattr(pool, "_begin_one", begin_with_room)
    assert pool.busy == {pool.take(2)}
    assert len(pool.idle) == 0


def test_one_that_was_forked_while_the_pool_stopped_is_ended() -> None:
    pool = a_pool(begin := Begin())
    begin.may.clear()
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(pool.take, 1)
        assert begin.waiting.wait(10)
        pool.stop()
        begin.may.set()
        child = taken.result(10)
    wait_for(child.ended, "the runner to end")
