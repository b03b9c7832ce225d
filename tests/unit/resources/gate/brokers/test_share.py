"""resources.gate.brokers.share: one tenant has one thread at a time, and one piece of work in a turn of the loop."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from resources.gate.brokers.share import Share, share_of


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


def test_work_of_one_tenant_is_done_one_by_one(slow: Slow) -> None:
    async def take_three() -> list[int]:
        share = Share()
        taking = [asyncio.create_task(share.in_thread(slow)) for _ in range(3)]
        await reaches(slow, 1)
        await asyncio.sleep(0.05)
        assert slow.begun == 1
        slow.may_end.set()
        return await asyncio.gather(*taking)

    assert asyncio.run(take_three()) == [1, 2, 3]


def test_another_tenant_has_a_thread_of_its_own(slow: Slow) -> None:
    async def take_two() -> None:
        taking = [asyncio.create_task(Share().in_thread(slow)) for _ in range(2)]
        await reaches(slow, 2)
        slow.may_end.set()
        await asyncio.gather(*taking)

    asyncio.run(take_two())


def test_work_counts_until_it_is_done_though_nobody_waits(slow: Slow) -> None:
    async def leave() -> None:
        share = Share()
        left = asyncio.create_task(share.in_thread(slow))
        await reaches(slow, 1)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        second = asyncio.create_task(share.in_thread(slow))
        await asyncio.sleep(0.05)
        assert slow.begun == 1
        slow.may_end.set()
        assert await second == 2

    asyncio.run(leave())


def test_work_that_fails_lets_the_next_one_begin() -> None:
    async def fail() -> None:
        share = Share()
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await share.in_thread(lambda: 1 // 0)

    asyncio.run(fail())


def test_runs_of_one_tenant_have_one_share() -> None:
    ours, theirs = share_of(1), share_of(2)
    assert share_of(1) is ours
    assert share_of(2) is theirs is not ours


# --- turns of the loop
class Turns:
    """Notes in which turn of the loop pieces of work are done."""

    def __init__(self) -> None:
        self.now = 0
        self.done: list[tuple[str, int]] = []
        self._count()

    def _count(self) -> None:
        self.now += 1
        asyncio.get_running_loop().call_soon(self._count)

    def note(self, name: str) -> None:
        self.done.append((name, self.now))

    async def work(self, share: Share, name: str, pieces: int = 1) -> None:
        for _ in range(pieces):
            await share.turn()
            self.note(name)

    def of(self, *names: str) -> list[int]:
        return [turn for name, turn in self.done if name in names]


def test_connections_of_one_tenant_take_turns_and_those_of_another_wait_for_none() -> None:
    async def work() -> None:
        turns, ours, theirs = Turns(), Share(), Share()
        many = [turns.work(ours, f"ours {number}", 3) for number in range(20)]
        await asyncio.gather(*many, turns.work(theirs, "theirs", 5))
        taken = turns.of(*{name for name, _ in turns.done} - {"theirs"})
        assert len(taken) == 60
        # As fair as a queue, and never more than two in a turn: the one that it was given to, and who came just then.
        assert max(map(taken.count, taken)) <= 2
        assert {name for name, _ in turns.done[:25]} >= {f"ours {number}" for number in range(15)}
        assert turns.of("theirs")[-1] - turns.of("theirs")[0] < 15

    asyncio.run(work())


def test_who_is_alone_waits_for_nobody_and_once_for_itself() -> None:
    async def work() -> None:
        turns, share = Turns(), Share()
        await turns.work(share, "first")
        assert turns.of("first") == [turns.now]
        assert not share.take()
        await turns.work(share, "second")
        assert turns.of("second")[0] > turns.of("first")[0]

    asyncio.run(work())


def test_a_call_has_a_turn_of_its_own_and_may_ask_for_another() -> None:
    async def work() -> None:
        turns, share, ended = Turns(), Share(), asyncio.Event()

        def call(left: int) -> None:
            turns.note("call")
            if left:
                share.call(lambda: call(left - 1))
            else:
                ended.set()

        share.call(lambda: call(5))
        assert turns.done == []  # not at once
        await ended.wait()
        assert len(set(turns.of("call"))) == 6

    asyncio.run(work())


def test_who_gives_up_keeps_no_turn_and_a_call_that_fails_stops_nobody() -> None:
    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        turns, share = Turns(), Share()
        share.take()
        given_up = [asyncio.ensure_future(share.turn()) for _ in range(5)]
        await asyncio.sleep(0)
        share.call(lambda: 1 // 0)
        waiting = asyncio.ensure_future(turns.work(share, "after"))
        for one in given_up:
            one.cancel()
        async with asyncio.timeout(10):
            await waiting
        assert all(one.cancelled() or one.done() for one in given_up)

    asyncio.run(work())
