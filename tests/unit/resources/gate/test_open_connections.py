"""resources.gate.open_connections: how many, who waits, and who gives up waiting."""

import asyncio

import pytest

from isolane.gate.connection import GateConnection
from resources.gate import open_connections
from resources.gate.open_connections import WAITING_MOST, OpenConnections
from tests.unit.isolane.gate.ends import Ends, run, until


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody give up by himself."""
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", 60.0)


class Entering:
    """A connection that enters, and what came of it."""

    def __init__(self, counted: OpenConnections, connection: GateConnection) -> None:
        self.task = asyncio.ensure_future(counted.enter(connection))

    @property
    def has_entered(self) -> bool | None:
        return self.task.result() if self.task.done() else None


async def entering(ends: Ends, counted: OpenConnections, numbers: range) -> list[Entering]:
    """Have so many connections enter, in this order, and go as far as they can."""
    found = [Entering(counted, (await ends.connection(number))[1]) for number in numbers]
    for _ in range(10):
        await asyncio.sleep(0)
    return found


def test_one_beyond_the_limit_waits_until_another_one_leaves() -> None:
    async def test(ends: Ends) -> None:
        counted = OpenConnections(2)
        first, second, third, fourth = await entering(ends, counted, range(1, 5))
        assert [first.has_entered, second.has_entered] == [True, True]
        assert [third.has_entered, fourth.has_entered] == [None, None]
        counted.leave()
        assert await third.task
        assert not fourth.task.done()  # in the order of their arrival, and no more than two
        counted.leave()
        assert await fourth.task

    run(test)


def test_without_a_limit_nobody_waits() -> None:
    async def test(ends: Ends) -> None:
        assert all(
            one.has_entered for one in await entering(ends, OpenConnections(None), range(1, 99))
        )

    run(test)


def test_it_waits_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_connections, "WAIT_SECONDS", 0.01)

    async def test(ends: Ends) -> None:
        counted = OpenConnections(1)
        first, late = await entering(ends, counted, range(1, 3))
        assert first.has_entered
        assert not await late.task
        counted.leave()
        (next_one,) = await entering(ends, counted, range(3, 4))
        assert next_one.has_entered

    run(test)


def test_only_some_wait() -> None:
    async def test(ends: Ends) -> None:
        counted = OpenConnections(1)
        _, *waiting, excess = await entering(ends, counted, range(1, WAITING_MOST + 3))
        assert {one.has_entered for one in waiting} == {None}
        assert excess.has_entered is False
        for one in waiting:
            counted.leave()
            assert await one.task

    run(test)


def test_one_that_is_broken_off_waits_no_more() -> None:
    async def test(ends: Ends) -> None:
        counted = OpenConnections(1)
        _, broken, next_one = await entering(ends, counted, range(1, 4))
        ends.inside.multiplexer.connections[2].reset()
        assert not await broken.task
        counted.leave()
        assert await next_one.task

    run(test)


def test_one_that_was_left_in_order_is_waited_with() -> None:
    """Its bytes were sent before its end, and are still to arrive."""

    async def test(ends: Ends) -> None:
        counted = OpenConnections(1)
        _, left = await entering(ends, counted, range(1, 3))
        inner, ours = ends.inside.multiplexer.connections[2], ends.worker.multiplexer.connections[2]
        await inner.write(b"last words")
        inner.write_eof()
        await until(lambda: ours.has_ended)
        inner.reset()
        await until(lambda: ours.has_left)
        for _ in range(10):
            await asyncio.sleep(0)
        assert left.has_entered is None
        counted.leave()
        assert await left.task
        assert await ours.read() == b"last words"

    run(test)


@pytest.mark.parametrize("is_given", [False, True])
def test_one_that_is_cancelled_keeps_no_place(*, is_given: bool) -> None:
    async def test(ends: Ends) -> None:
        counted = OpenConnections(1)
        _, cancelled, next_one = await entering(ends, counted, range(1, 4))
        if is_given:
            counted.leave()
            cancelled.task.cancel()
        else:
            cancelled.task.cancel()
            await asyncio.sleep(0)
            counted.leave()
        with pytest.raises(asyncio.CancelledError):
            await cancelled.task
        assert await next_one.task

    run(test)
