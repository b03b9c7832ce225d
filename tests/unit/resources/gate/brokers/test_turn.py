"""resources.gate.brokers.turn: one run has one thread at a time."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from resources.gate.brokers.turn import Turn


class Slow:
    """Work that notes when it begins, and goes on for as long as the test says."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Event()

    def __call__(self) -> int:
        self.begun += 1
        assert self.may_end.wait(10)
        return self.begun


@pytest.fixture
def slow() -> Iterator[Slow]:
    """Work that ends with the test at the latest."""
    work = Slow()
    yield work
    work.may_end.set()


async def reaches(work: Slow, number: int) -> None:
    async with asyncio.timeout(10):
        while work.begun < number:
            await asyncio.sleep(0.001)


def test_work_of_one_run_is_done_one_by_one(slow: Slow) -> None:
    async def take_three() -> list[int]:
        turn = Turn()
        taking = [asyncio.create_task(turn.take(slow)) for _ in range(3)]
        await reaches(slow, 1)
        await asyncio.sleep(0.05)
        assert slow.begun == 1
        slow.may_end.set()
        return await asyncio.gather(*taking)

    assert asyncio.run(take_three()) == [1, 2, 3]


def test_another_run_has_a_turn_of_its_own(slow: Slow) -> None:
    async def take_two() -> None:
        taking = [asyncio.create_task(Turn().take(slow)) for _ in range(2)]
        await reaches(slow, 2)
        slow.may_end.set()
        await asyncio.gather(*taking)

    asyncio.run(take_two())


def test_a_turn_lasts_until_its_work_is_done_though_nobody_waits(slow: Slow) -> None:
    async def leave() -> None:
        turn = Turn()
        left = asyncio.create_task(turn.take(slow))
        await reaches(slow, 1)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        second = asyncio.create_task(turn.take(slow))
        await asyncio.sleep(0.05)
        assert slow.begun == 1
        slow.may_end.set()
        assert await second == 2

    asyncio.run(leave())


def test_work_that_fails_gives_its_turn_back() -> None:
    async def fail() -> None:
        turn = Turn()
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await turn.take(lambda: 1 // 0)

    asyncio.run(fail())
