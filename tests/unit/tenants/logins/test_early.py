"""Few logins are admitted to Django at once; an incomplete form keeps no one out."""

import asyncio
import json

from asgiref.sync import async_to_sync

from tests.front import Front

THERE = "198.51.100.1"
LOGIN = ("POST", "/login/")


def test_few_are_let_in_at_once_and_who_comes_again_and_again_waits() -> None:
    async def flood() -> None:
        now = [1000.0]
        front = Front(clock=lambda: now[0], most=1)
        front.answering.clear()
        inside = asyncio.ensure_future(front.ask(*LOGIN, address=THERE))
        await asyncio.sleep(0)
        waits = []
        for _ in range(22):
            refused = await front.ask(*LOGIN)
            assert refused is not None
            waits.append((refused[0], refused[1]["retry-after"]))
        assert waits == [(429, "2")] * 21 + [(429, "1")]
        front.answering.set()
        await inside
        refused = await front.ask(*LOGIN)
        assert refused is not None  # though there is room now
        assert await front.ask(*LOGIN, address=THERE) is None
        now[0] += 1
        assert await front.ask(*LOGIN) is None

    async_to_sync(flood)()


def test_a_form_that_comes_slowly_keeps_nobody_out() -> None:
    async def wait() -> None:
        front = Front(clock=lambda: 1000.0, most=1)
        slow = [asyncio.ensure_future(front.ask(*LOGIN, unfinished=True)) for _ in range(50)]
        await asyncio.sleep(0)
        assert front.let_in == []
        assert await front.ask(*LOGIN) is None
        assert front.let_in == [b"form"]
        for one in slow:
            one.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    async_to_sync(wait)()


def test_a_form_is_passed_on_whole_and_is_small() -> None:
    front = Front(clock=lambda: 1000.0)
    assert front.now(*LOGIN, body=(b"for", b"m")) is None
    assert front.let_in == [b"form"]
    refused = front.now(*LOGIN, body=(b"x" * 60_000, b"x" * 60_000), unfinished=True)
    assert refused is not None
    assert (refused[0], json.loads(refused[2])["code"]) == (413, "too_large")
    assert len(front.let_in) == 1
