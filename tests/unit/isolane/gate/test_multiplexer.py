"""isolane.gate.multiplexer: many connections over one channel, whose other end may not keep to anything."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from isolane.channel import Channel, channel_pair
from isolane.gate.frames import CHUNK, FROM_FORWARDER, WINDOW, FrameKind, GateFrame, encode
from isolane.protocol import HEADER, VERSION, ProtocolError
from tests.unit.isolane.gate.ends import SECONDS, End, Ends, read_all, run, until

MB = 1024 * 1024


def test_one_that_is_not_read_stops_no_other() -> None:
    async def test(ends: Ends) -> None:
        stalled, _ = await ends.connection(1)
        stuck = asyncio.ensure_future(stalled.write(bytes(MB)))
        inner, outer = await ends.connection(2)
        reading = asyncio.ensure_future(read_all(outer))
        await inner.write(bytes(3 * MB))
        inner.write_eof()
        assert len(await reading) == 3 * MB
        assert not stuck.done()
        stuck.cancel()

    run(test)


def test_connections_take_turns() -> None:
    async def test(ends: Ends) -> None:
        pairs = [await ends.connection(number) for number in (1, 2)]
        writing = [asyncio.ensure_future(inner.write(bytes(WINDOW))) for inner, _ in pairs]
        first, second = (outer for _, outer in pairs)
        most = 0
        while first.received + second.received < 2 * WINDOW:
            await asyncio.sleep(0)
            most = max(most, abs(first.received - second.received))
        assert most <= CHUNK
        await asyncio.gather(*writing)

    run(test)


def test_what_is_urgent_overtakes_bytes() -> None:
    async def test(ends: Ends) -> None:
        inner, outer = await ends.connection()
        await inner.write(bytes(CHUNK))
        ends.inside.multiplexer.send(GateFrame(FrameKind.LISTENING))
        await until(lambda: ends.worker.frames[-1].kind is FrameKind.LISTENING)
        assert outer.received in {0, CHUNK}  # it came no later
        await until(lambda: outer.received)

    run(test)


def test_an_end_of_the_channel_is_told_once() -> None:
    async def test(ends: Ends) -> None:
        await ends.connection()
        ends.inside.multiplexer.close()
        ends.inside.multiplexer.close()
        await until(lambda: ends.worker.ended)
        ends.worker.multiplexer.close()
        assert (ends.worker.ended, ends.worker.numbers) == ([None], [])
        ends.worker.multiplexer.send(GateFrame(FrameKind.FLUSH))  # to nobody

    run(test)


Alone = Callable[[End, Channel], Awaitable[object]]


def run_alone(test: Alone, **options: Any) -> None:
    """Run a test with the worker's end; the test holds the other one."""

    async def whole() -> None:
        ours, theirs = channel_pair()
        with theirs:
            end = End(ours, accepted=FROM_FORWARDER, **options)
            async with asyncio.timeout(SECONDS):
                await test(end, theirs)
            end.multiplexer.close()

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (GateFrame(FrameKind.DATA, 9, 0, b"x"), "DATA: of a connection that is over or never was"),
        (GateFrame(FrameKind.FLUSH), "frame type 17 is not expected"),
        (GateFrame(FrameKind.ROUTES, data=b"{}"), "frame type 16 is not expected"),
    ],
)
def test_a_breach_ends_the_channel(sent: GateFrame, message: str) -> None:
    async def test(end: End, theirs: Channel) -> None:
        theirs.send(encode(sent))
        await until(lambda: end.ended)
        (error,) = end.ended
        assert isinstance(error, ProtocolError)
        assert message in str(error)
        assert theirs.receive(1) == b""

    run_alone(test)


def test_frames_of_connections_that_are_over_are_not_heeded() -> None:
    async def test(end: End, theirs: Channel) -> None:
        for kind in (FrameKind.CREDIT, FrameKind.END, FrameKind.RESET):
            theirs.send(encode(GateFrame(kind, 5, 0)))
        theirs.send(encode(GateFrame(FrameKind.LISTENING)))
        await until(lambda: end.frames)
        assert (end.frames, end.ended) == ([GateFrame(FrameKind.LISTENING)], [])

    run_alone(test)


def test_a_side_that_does_not_read_is_not_read() -> None:
    async def test(end: End, theirs: Channel) -> None:
        sent = 0
        answered = encode(GateFrame(FrameKind.RESET, 1))

        end.on_frame = lambda _: end.multiplexer.send(GateFrame(FrameKind.RESET, 1))
        dial = encode(GateFrame(FrameKind.DIAL, 1, 0)) * 100
        idle = 0
        while idle < 50:
            try:
                sent += theirs.send(dial)
                idle = 0
            except BlockingIOError:
                idle += 1
            await asyncio.sleep(0)
        waiting = len(end.multiplexer._urgent)
        assert 1024 < waiting < 1024 + 128 * 1024 / len(dial) * 100 + 1
        before = len(end.frames)
        while len(end.frames) == before:  # it reads again once it is read
            theirs.receive(len(answered) * 1000)
            await asyncio.sleep(0)

    run_alone(test, urgent_most=1024)


def test_two_ends_with_too_much_to_say_do_not_wait_for_each_other() -> None:
    async def test(ends: Ends) -> None:
        most = 20_000
        answer = ends.worker.multiplexer
        ends.worker.on_frame = lambda frame: answer.send(
            GateFrame(FrameKind.RESET, frame.connection)
        )
        for number in range(1, most + 1):
            ends.inside.multiplexer.send(GateFrame(FrameKind.DIAL, number, 0))
        await until(lambda: len(ends.worker.frames) == most)

    run(test)


def test_many_connections_to_a_side_that_does_not_read_keep_little() -> None:
    async def test(end: End, theirs: Channel) -> None:
        connections = [end.multiplexer.open(number) for number in range(1, 11)]
        writing = [asyncio.ensure_future(one.write(bytes(64 * 1024))) for one in connections]
        for _ in range(200):
            await asyncio.sleep(0)
        kept = sum(len(one._outgoing) for one in connections) + len(end.multiplexer._unsent)
        assert kept <= 10 * 64 * 1024
        more = [asyncio.ensure_future(one.write(bytes(64 * 1024))) for one in connections]
        await asyncio.sleep(0)
        assert sum(task.done() for task in more) <= 1  # whose first bytes are in the channel
        for task in writing + more:
            task.cancel()

    run_alone(test)


def test_half_a_frame_and_silence_keep_half_a_frame() -> None:
    async def test(end: End, theirs: Channel) -> None:
        theirs.send(HEADER.pack(VERSION, FrameKind.REFUSED_NAME, 255) + bytes(100))
        await until(lambda: len(end.multiplexer._reader._rest) == HEADER.size + 100)
        assert (end.frames, end.ended) == ([], [])

    run_alone(test)


def test_bytes_one_by_one_are_charged_as_frames() -> None:
    charged: list[tuple[int, int]] = []

    def pause(frames: int, size: int) -> float:
        charged.append((frames, size))
        return 0.0

    async def test(end: End, theirs: Channel) -> None:
        for byte in encode(GateFrame(FrameKind.LISTENING)):
            charged.clear()
            theirs.send(bytes([byte]))
            await until(charged.copy)
            assert charged == [(1, 1)]
        assert end.frames == [GateFrame(FrameKind.LISTENING)]

    run_alone(test, pause=pause)


def test_a_pause_is_kept_and_ends() -> None:
    pauses = iter([0.02])

    async def test(end: End, theirs: Channel) -> None:
        frame = encode(GateFrame(FrameKind.LISTENING))
        theirs.send(frame)
        await until(lambda: end.frames)
        theirs.send(frame)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(end.frames) == 1
        await until(lambda: len(end.frames) == 2)

    run_alone(test, pause=lambda _frames, _size: next(pauses, 0.0))


def test_small_frames_behind_a_large_one_leave_others_their_turns() -> None:
    frames, turns = 5_000, 0

    async def test(end: End, theirs: Channel) -> None:
        nonlocal turns
        theirs.widen(256 * 1024)
        end.multiplexer.open(1)
        large = encode(GateFrame(FrameKind.DATA, 1, 0, bytes(20_000)))
        assert theirs.send(large + encode(GateFrame(FrameKind.LISTENING)) * frames) > 50_000
        while len(end.frames) < frames:
            before = len(end.frames)
            await asyncio.sleep(0)
            assert len(end.frames) - before <= 256
            turns += 1
        assert end.numbers == [1]
        assert turns > frames // 256

    run_alone(test)


@pytest.mark.parametrize("is_writing", [False, True])
def test_what_the_other_side_sent_before_it_went_is_taken(is_writing: bool) -> None:
    async def test(end: End, theirs: Channel) -> None:
        connection = end.multiplexer.open(1)
        theirs.send(encode(GateFrame(FrameKind.DATA, 1, 0, bytes(1000))))
        theirs.send(encode(GateFrame(FrameKind.END, 1)))
        theirs.close()
        if is_writing:  # which fails first
            end.multiplexer._write_soon()
            await connection.write(b"x")
            end.multiplexer._begin_writing()
        end.multiplexer.close()
        assert len(await read_all(connection)) == 1000

    run_alone(test)


def test_credit_is_returned_for_what_is_taken() -> None:
    async def test(end: End, theirs: Channel) -> None:
        connection = end.multiplexer.open(1)
        for _ in range(WINDOW // CHUNK):
            frame = encode(GateFrame(FrameKind.DATA, 1, 0, bytes(CHUNK)))
            while frame:
                try:
                    frame = frame[theirs.send(frame) :]
                except BlockingIOError:
                    await asyncio.sleep(0)
        await until(lambda: connection.received == WINDOW)
        taken = 0
        while taken < WINDOW:
            taken += len(await connection.read())
        await asyncio.sleep(0)
        half = encode(GateFrame(FrameKind.CREDIT, 1, WINDOW // 2))
        assert theirs.receive(1000) == half * 2

    run_alone(test)
