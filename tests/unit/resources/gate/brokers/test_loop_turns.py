"""resources.gate.brokers.loop_turns: one piece of work of a tenant in a turn of the loop."""

import asyncio

from resources.gate.brokers.loop_turns import LoopTurns


class Notes:
    """Notes in which turn of the loop pieces of work are done."""

    def __init__(self) -> None:
        self.now = 0
        self.done: list[tuple[str, int]] = []
        self._count()

    def _count(self) -> None:
        self.now += 1
        asyncio.get_running_loop().call_soon(self._count)

    def add(self, name: str) -> None:
        self.done.append((name, self.now))

    async def work(self, turns: LoopTurns, name: str, pieces: int = 1) -> None:
        """Do some pieces of work, one after the other."""
        for _ in range(pieces):
            await turns.wait()
            self.add(name)

    def of(self, name: str) -> list[int]:
        return [turn for each, turn in self.done if each.startswith(name)]


def test_connections_of_one_tenant_take_turns_and_those_of_another_wait_for_none() -> None:
    async def work() -> None:
        notes, ours, theirs = Notes(), LoopTurns(), LoopTurns()
        many = [notes.work(ours, f"ours {number}", 3) for number in range(20)]
        await asyncio.gather(*many, notes.work(theirs, "theirs", 5))
        taken = notes.of("ours")
        assert len(taken) == 60
        # Never more than two in a turn: the one to whom it was given, and one who came just then.
        assert max(map(taken.count, taken)) <= 2
        first = [name for name, _ in notes.done if name != "theirs"][:20]
        assert len(set(first)) >= 18  # nearly as fair as a queue
        assert notes.of("theirs")[-1] - notes.of("theirs")[0] < 15

    asyncio.run(work())


def test_who_is_alone_waits_for_nobody_but_for_the_next_turn_after_its_own() -> None:
    async def work() -> None:
        notes, turns = Notes(), LoopTurns()
        await notes.work(turns, "first")
        assert notes.of("first") == [notes.now]
        assert not turns.take()
        await notes.work(turns, "second")
        assert notes.of("second")[0] > notes.of("first")[0]

    asyncio.run(work())


def test_a_call_has_a_turn_of_its_own_and_may_ask_for_another() -> None:
    async def work() -> None:
        notes, turns, ended = Notes(), LoopTurns(), asyncio.Event()

        def call(left: int) -> None:
            notes.add("call")
            if left:
                turns.call(lambda: call(left - 1))
            else:
                ended.set()

        turns.call(lambda: call(5))
        assert notes.done == []  # not at once
        await ended.wait()
        assert len(set(notes.of("call"))) == 6

    asyncio.run(work())


def test_who_gives_up_keeps_no_turn_and_a_call_that_fails_stops_nobody() -> None:
    async def work() -> None:
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: errors.append(said))
        notes, turns = Notes(), LoopTurns()
        turns.take()
        given_up = [asyncio.ensure_future(turns.wait()) for _ in range(5)]
        await asyncio.sleep(0)
        turns.call(lambda: 1 // 0)
        waiting = asyncio.ensure_future(notes.work(turns, "after"))
        for one in given_up:
            one.cancel()
        async with asyncio.timeout(10):
            await waiting
        assert [type(said["exception"]) for said in errors] == [ZeroDivisionError]

    asyncio.run(work())
