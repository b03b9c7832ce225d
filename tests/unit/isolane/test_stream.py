"""isolane.stream: frames over a channel, whatever the peer does."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from isolane.channel import Channel, channel_pair
from isolane.protocol import MAX_OUTPUT, Cancel, Close, Log, ProtocolError, Ready, encode
from isolane.results import StepResult
from isolane.stream import Stream, StreamClosedError


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = channel_pair()
    with ours, theirs:
        yield ours, theirs


Pair = tuple[Channel, Channel]


def test_frames_arrive_in_order(pair: Pair) -> None:
    left, right = Stream(pair[0]), Stream(pair[1])
    left.send(Cancel())
    left.send(Close())
    assert [right.receive(1), right.receive(1)] == [Cancel(), Close()]


def test_bytes_may_come_one_by_one(pair: Pair) -> None:
    stream = Stream(pair[0])
    for byte in encode(Cancel()):
        with pytest.raises(TimeoutError):
            stream.receive(0.001)
        pair[1].send(bytes([byte]))
    assert stream.receive(1) == Cancel()


def test_a_peer_that_trickles_cannot_hold_the_receiver(pair: Pair) -> None:
    stream, stop = Stream(pair[0]), threading.Event()
    data = encode(StepResult.succeeded(step="a", attempt=0, output="x" * 100_000))

    def trickle() -> None:
        for byte in data:
            if stop.wait(0.001):
                return
            pair[1].send(bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        stream.receive(0.1)
    assert time.monotonic() - began < 1
    stop.set()
    thread.join()


def test_the_end_of_the_stream_is_seen_even_within_a_frame(pair: Pair) -> None:
    stream = Stream(pair[0])
    pair[1].send(encode(Cancel()) + encode(Close())[:3])
    pair[1].close()
    assert stream.receive(1) == Cancel()
    with pytest.raises(StreamClosedError):
        stream.receive(1)
    with pytest.raises(StreamClosedError):
        stream.send(Cancel())


def test_a_bad_header_is_refused_before_the_payload_comes(pair: Pair) -> None:
    stream = Stream(pair[0])
    pair[1].send(b"\x01\x43\xff\xff\xff\xff")
    with pytest.raises(ProtocolError, match="over the limit"):
        stream.receive(1)


def test_a_peer_that_does_not_read_cannot_hold_the_sender(pair: Pair) -> None:
    stream = Stream(pair[0])
    large = StepResult.succeeded(step="a", attempt=0, output="x" * MAX_OUTPUT)
    with pytest.raises(TimeoutError):
        stream.send(large, timeout=0.05)


def test_nothing_is_sent_when_the_time_is_over_before(pair: Pair) -> None:
    left, right = Stream(pair[0]), Stream(pair[1])
    with pytest.raises(TimeoutError):
        left.send(Cancel(), timeout=0)
    left.send(Close())
    assert right.receive(1) == Close()


def test_many_threads_may_send(pair: Pair) -> None:
    left, right = Stream(pair[0]), Stream(pair[1])
    lines = [Log(step=str(n), level="info", message="x" * 8_000) for n in range(40)]
    threads = [threading.Thread(target=left.send, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()
    received = [right.receive(5) for _ in lines]
    for thread in threads:
        thread.join()
    assert sorted(map(repr, received)) == sorted(map(repr, lines))


def test_a_frame_sent_while_the_same_thread_is_sending_comes_next(pair: Pair) -> None:
    """A finaliser can run, and print, at any moment: also in the middle of a send."""

    class Finalising:
        def __init__(self, channel: Channel) -> None:
            self.channel = channel

        def __getattr__(self, name: str) -> Any:
            return getattr(self.channel, name)

        def send(self, data: memoryview) -> int:
            if data[1] == encode(Ready())[1]:
                stream.send(Cancel())
            return self.channel.send(data[:3])

    stream = Stream(Finalising(pair[0]))  # type: ignore[arg-type]
    stream.send(Ready())
    stream.send(Close())
    peer = Stream(pair[1])
    assert [peer.receive(1) for _ in range(3)] == [Ready(), Cancel(), Close()]


class Counting:
    """A channel whose writes are counted."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.channel, name)

    def send(self, data: memoryview) -> int:
        self.writes += 1
        return self.channel.send(data)


def test_what_is_held_goes_before_the_next_frame_and_with_it(pair: Pair) -> None:
    counting = Counting(pair[0])
    stream, peer = Stream(counting), Stream(pair[1])  # type: ignore[arg-type]
    stream.hold(Cancel())
    stream.hold(Close())
    with pytest.raises(TimeoutError):
        peer.receive(0.01)
    stream.send(Ready())
    assert [peer.receive(1) for _ in range(3)] == [Cancel(), Close(), Ready()]
    assert counting.writes == 1


def test_what_is_held_goes_alone_when_it_must(pair: Pair) -> None:
    counting = Counting(pair[0])
    stream, peer = Stream(counting), Stream(pair[1])  # type: ignore[arg-type]
    stream.hold(Cancel())
    stream.flush()
    assert peer.receive(1) == Cancel()
    stream.flush()
    assert counting.writes == 1


class Narrow(Counting):
    """Takes so many bytes more, and no others."""

    room = 0

    def send(self, data: memoryview) -> int:
        if not self.room:
            raise BlockingIOError
        sent = super().send(data[: self.room])
        self.room -= sent
        return sent


@pytest.mark.parametrize("room", [0, 3])
def test_what_is_held_waits_for_no_peer_and_is_not_cut(pair: Pair, room: int) -> None:
    narrow = Narrow(pair[0])
    narrow.room = room
    stream, peer = Stream(narrow), Stream(pair[1])  # type: ignore[arg-type]
    stream.hold(Cancel())
    stream.flush()
    stream.hold(Close())
    narrow.room = 1000
    stream.send(Ready())
    assert [peer.receive(1) for _ in range(3)] == [Cancel(), Close(), Ready()]


def test_nor_for_a_thread_that_sends(pair: Pair) -> None:
    stream = Stream(pair[0])
    stream.hold(Cancel())
    with stream._lock:
        stream.flush()  # returns
    stream.flush()
    assert Stream(pair[1]).receive(1) == Cancel()
