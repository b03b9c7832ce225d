"""isolane.gate.connection: one connection between two ends that keep to the protocol, and one that does not."""

import asyncio
import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolane.gate.connection import GateConnection
from isolane.gate.frames import CHUNK, WINDOW, FrameKind, GateFrame
from isolane.protocol import ProtocolError
from tests.unit.isolane.gate.ends import Ends, read_all, run, until

MB = 1024 * 1024


def test_bytes_arrive_whole_and_in_order_in_both_directions() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection()
        up, down = random.Random(1).randbytes(MB), random.Random(2).randbytes(MB + 7)

        async def send(connection: GateConnection, data: bytes) -> None:
            await connection.write(data)
            connection.write_eof()

        *_, got_up, got_down = await asyncio.gather(
            send(inner, up), send(outer, down), read_all(outer), read_all(inner)
        )
        assert (got_up == up, got_down == down) == (True, True)
        assert (inner.sent, inner.received) == (outer.received, outer.sent) == (len(up), len(down))
        await ends.forgotten()

    run(test)


def test_one_that_is_not_read_holds_a_window_and_its_writer() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection()
        writing = asyncio.ensure_future(inner.write(bytes(3 * MB)))
        await until(lambda: outer.received == WINDOW)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (outer.received, inner.sent, writing.done()) == (WINDOW, WINDOW, False)
        assert len(outer._incoming) == WINDOW
        inner.write_eof()
        assert len(await read_all(outer)) == 3 * MB
        await writing

    run(test)


@pytest.mark.parametrize("first", ["inside", "worker"])
def test_half_a_connection_goes_on_when_the_other_half_has_ended(first: str) -> None:
    async def test(ends: Ends) -> None:
        pair = await ends.connection()
        ending, going_on = pair if first == "inside" else pair[::-1]
        await ending.write(b"question")
        ending.write_eof()
        assert await read_all(going_on) == b"question"
        assert going_on.has_ended
        assert not ending.has_ended
        await going_on.write(b"answer")
        assert await ending.read() == b"answer"
        going_on.write_eof()
        assert await ending.read() == b""
        await ends.forgotten()

    run(test)


@pytest.mark.parametrize("first", ["inside", "worker", "both"])
def test_a_reset_ends_both_sides_at_once(first: str) -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection()
        await inner.write(bytes(WINDOW + 1000))  # some of which waits for credit
        resetting = {"inside": [inner], "worker": [outer], "both": [inner, outer]}[first]
        for connection in resetting:
            connection.reset()
            connection.reset()
        await ends.forgotten()
        for connection in (inner, outer):
            with pytest.raises(ConnectionResetError):
                await connection.read()
            with pytest.raises(ConnectionResetError):
                await connection.write(b"x")
            assert (len(connection._incoming), len(connection._outgoing)) == (0, 0)

    run(test)


def test_a_reset_wakes_a_reader_and_a_writer() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection()
        waiting = [
            asyncio.ensure_future(inner.write(bytes(MB))),
            asyncio.ensure_future(inner.read()),
        ]
        await until(lambda: outer.received == WINDOW)
        outer.reset()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in found] == [ConnectionResetError] * 2

    run(test)


def test_an_end_and_a_reset_may_cross() -> None:
    async def test(ends: Ends) -> None:
        for number, is_ended in enumerate([False, True] * 2, start=1):
            inner, outer = await ends.connection(number)
            # Then the other END is the last frame of a connection that is over for its sender.
            if is_ended:
                outer.write_eof()
                await until(partial(getattr, inner, "has_ended"))
            (inner if number < 3 else outer).write_eof()
            await asyncio.sleep(0)
            (outer if number < 3 else inner).reset()
            await ends.forgotten()

    run(test)


@pytest.mark.parametrize("first", ["inside", "worker"])
def test_what_has_come_before_an_end_in_order_outlives_a_reset(first: str) -> None:
    async def test(ends: Ends) -> None:
        pair = await ends.connection()
        leaving, reading = pair if first == "inside" else pair[::-1]
        await leaving.write(b"the last words")
        leaving.write_eof()
        await until(lambda: reading.has_ended)
        assert leaving.waits_for_end
        leaving.reset()
        await ends.forgotten()
        assert reading.has_left
        assert not leaving.has_left
        assert await read_all(reading) == b"the last words"
        with pytest.raises(ConnectionResetError):
            await reading.write(b"nobody reads this")

    run(test)


def test_what_has_come_before_an_end_in_order_outlives_the_channel() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection(1)
        other, cut_off = await ends.connection(2)
        await inner.write(b"the last words")
        inner.write_eof()
        await other.write(b"half a sen")
        await until(lambda: cut_off.received and outer.has_ended)
        ends.inside.multiplexer.close()
        await until(lambda: ends.worker.ended == [None])
        assert await read_all(outer) == b"the last words"
        await outer.write(bytes(MB))  # to nobody, and without waiting
        with pytest.raises(ConnectionResetError):
            await cut_off.read()
        assert outer.is_finished
        assert cut_off.is_finished

    run(test)


def test_finishing_waits_for_the_other_side_and_then_resets() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection(1)
        await outer.write(b"bye")
        finishing = asyncio.ensure_future(outer.finish(None))
        assert await read_all(inner) == b"bye"
        assert not finishing.done()
        inner.write_eof()
        await finishing
        assert not outer.is_reset

        inner, outer = await ends.connection(2)
        await outer.write(b"bye")
        await outer.finish(0.01)
        assert outer.is_reset

        inner, outer = await ends.connection(3)
        await outer.finish(None)  # nothing was said, so nothing is awaited
        assert outer.is_reset
        await ends.forgotten()

    run(test)


def test_finishing_that_is_cancelled_leaves_nothing() -> None:
    async def test(ends: Ends) -> None:
        _, outer = await ends.connection()
        await outer.write(b"bye")
        finishing = asyncio.ensure_future(outer.finish(None))
        await asyncio.sleep(0)
        finishing.cancel()
        await ends.forgotten()

    run(test)


def alone() -> GateConnection:
    return GateConnection(
        7,
        ready=lambda _: None,
        send=lambda _: None,
        send_data=lambda _number, _data: False,
        charge=lambda _size: None,
        room=memoryview(b""),
    )


def data(size: int) -> GateFrame:
    return GateFrame(FrameKind.DATA, 7, 0, bytes(size))


END, RESET = GateFrame(FrameKind.END, 7), GateFrame(FrameKind.RESET, 7)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([data(CHUNK)] * (WINDOW // CHUNK) + [data(1)], "DATA: more bytes than there was credit"),
        ([END, data(1)], "DATA: behind the end"),
        ([END, END], "END: twice"),
        ([RESET, RESET], "RESET: twice"),
        ([GateFrame(FrameKind.CREDIT, 7, 1)], "CREDIT: more than was used"),
        ([GateFrame(FrameKind.CREDIT, 7, 2**32 - 1)], "CREDIT: more than was used"),
    ],
)
def test_a_side_without_the_right_is_refused(frames: list[GateFrame], message: str) -> None:
    connection = alone()
    for frame in frames[:-1]:
        connection.accept(frame)
    with pytest.raises(ProtocolError, match=message):
        connection.accept(frames[-1])


def test_credit_ends_for_one_that_was_reset_too() -> None:
    connection = alone()
    connection.reset()
    for _ in range(WINDOW // CHUNK):
        connection.accept(data(CHUNK))
    assert len(connection._incoming) == 0
    with pytest.raises(ProtocolError, match="more bytes than there was credit"):
        connection.accept(data(1))


def test_many_single_bytes_take_the_room_of_their_bytes() -> None:
    connection = alone()
    for _ in range(10_000):
        connection.accept(data(1))
    assert connection._incoming.__sizeof__() < 20_000


actions = st.lists(
    st.tuples(
        st.integers(0, 2),  # the connection
        st.sampled_from([0, 1]),  # its side
        st.sampled_from(["write", "write", "write", "read", "read", "end", "reset", "turn"]),
        st.integers(1, 150_000),
    ),
    max_size=40,
)


class Side:
    """A side of a connection, and all that went through it."""

    def __init__(self, connection: GateConnection) -> None:
        self.connection = connection
        self.written = bytearray()
        self.read = bytearray()
        self.has_ended = False

    async def act(self, action: str, size: int, noise: random.Random) -> None:
        if action == "end":
            self.connection.write_eof()
            self.has_ended = True
        elif action == "reset":
            self.connection.reset()
        elif action == "write" and not (self.has_ended or self.connection._outgoing):
            data = noise.randbytes(size)
            self.written += data  # waits here if at all for what is not awaited below
            await _now(self.connection.write(data))
        elif action == "read" and (self.connection._incoming or self.connection.has_ended):
            self.read += await self.connection.read()
        else:
            await asyncio.sleep(0)


async def _now(writing: object) -> None:
    """Let it begin; what it has to wait for comes by itself."""
    task = asyncio.ensure_future(writing)  # type: ignore[call-overload]  # a coroutine
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@settings(max_examples=60, deadline=None)
@given(actions)
def test_whatever_both_sides_do_bytes_are_in_order_and_both_forget(
    steps: list[tuple[int, int, str, int]],
) -> None:
    async def test(ends: Ends) -> None:
        pairs = [[Side(one) for one in await ends.connection(number)] for number in (1, 2, 3)]
        noise = random.Random(5)
        for which, end, action, size in steps:
            acting = pairs[which][end]
            if not acting.connection.is_reset:
                try:
                    await acting.act(action, size, noise)
                except ConnectionResetError:
                    assert acting.connection.is_reset
        for inner, outer in pairs:
            for side in (inner, outer):
                side.connection.write_eof()
            for here, there in ((inner, outer), (outer, inner)):
                try:
                    there.read += await read_all(there.connection)
                    assert there.read == here.written
                except ConnectionResetError:
                    assert here.written.startswith(there.read)
        await ends.forgotten()

    run(test)
