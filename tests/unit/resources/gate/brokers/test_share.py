"""resources.gate.brokers.share: one tenant has one thread at a time, and its runs have it in turn."""

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


def test_runs_of_one_tenant_have_its_turns_and_its_thread_together(slow: Slow) -> None:
    async def take_three() -> None:
        ours, theirs = [share_of(1), share_of(1)], share_of(2)
        assert ours[0].turns is ours[1].turns is not theirs.turns
        taking = [asyncio.create_task(one.in_thread(slow)) for one in (*ours, theirs)]
        await reaches(slow, 2)
        await asyncio.sleep(0.05)
        assert slow.begun == 2  # one of each tenant
        slow.may_end.set()
        await asyncio.gather(*taking)

    asyncio.run(take_three())


def test_a_run_with_much_work_delays_another_one_of_its_tenant_by_one_piece() -> None:
    async def take() -> list[str]:
        busy, other = share_of(3), share_of(3)
        done: list[str] = []

        async def work(share: Share, name: str) -> None:
            await share.in_thread(lambda: None)
            done.append(name)

        many = [asyncio.create_task(work(busy, "busy")) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.gather(work(other, "other"), *many)
        return done

    assert asyncio.run(take()).index("other") <= 2
