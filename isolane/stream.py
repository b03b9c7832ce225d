"""Frames over a channel.

After a send that timed out the stream ends in the middle of a frame and cannot be used again.

Timing: a call blocks until its frame went through or its timeout is over, however slow the peer is.
Model: any number of threads send; one thread receives.
Guarantee: frames arrive whole and in order; a half-read frame is continued by the next call.
Failure: StreamClosedError when the peer is gone, TimeoutError, ProtocolError.
"""

import select
import threading
import time
from collections import deque

from isolane.channel import Channel
from isolane.protocol import HEADER, Frame, decode, encode, frame_size

_CHUNK = 64 * 1024


class StreamClosedError(ConnectionError):
    """The peer closed its end."""


class Stream:
    """One end of the stream between a worker and a runner."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._received = bytearray()
        self._lock = threading.Lock()
        self._sender: int | None = None  # the thread that holds the lock
        self._held: deque[bytes] = deque()  # sent before the next frame
        self._late: deque[bytes] = deque()  # sent after it

    def send(self, frame: Frame, timeout: float | None = None) -> None:
        """Send a frame, waiting at most timeout seconds for a peer that does not read."""
        data, deadline = encode(frame), _deadline(timeout)
        if self.sending():
            # A finaliser printed while this thread was sending: its frame comes next.
            self._late.append(data)
            return
        self._send(data, deadline)

    def hold(self, frame: Frame) -> None:
        """Send a frame with the next one, or with `flush`: that wakes the peer once instead of twice."""
        self._held.append(encode(frame))

    def flush(self) -> None:
        """Send the held frames, as far as that is possible without waiting."""
        if not self._held or self.sending() or not self._lock.acquire(blocking=False):
            return
        self._sender = threading.get_ident()
        try:
            data = self._take_held()
            try:
                sent = self._channel.send(data)
            except BlockingIOError:
                sent = 0
            except ConnectionError as error:
                raise StreamClosedError(str(error)) from None
            if data[sent:]:
                self._held.appendleft(data[sent:])
        finally:
            self._sender = None
            self._lock.release()

    def _send(self, data: bytes, deadline: float | None) -> None:
        with self._lock:
            self._sender = threading.get_ident()
            try:
                self._write(self._take_held() + data if self._held else data, deadline)
                while self._late:
                    self._write(self._late.popleft(), deadline)
            finally:
                self._sender = None

    def sending(self) -> bool:
        """Say whether the calling thread is just sending, as a finaliser may find it."""
        return self._sender == threading.get_ident()

    def receive(self, timeout: float | None = None) -> Frame:
        """Return the next frame, waiting at most timeout seconds for all of it."""
        deadline = _deadline(timeout)
        while (frame := self._take()) is None:
            _wait(self._channel.reading, select.POLLIN, deadline)
            self._read()
        return frame

    def close(self) -> None:
        """Close this end; the thread that receives must not be receiving."""
        self._channel.close()

    def _take_held(self) -> bytes:
        return b"".join([self._held.popleft() for _ in range(len(self._held))])

    def _take(self) -> Frame | None:
        if len(self._received) < HEADER.size:
            return None
        size = frame_size(bytes(self._received[: HEADER.size]))
        if len(self._received) < size:
            return None
        data = bytes(self._received[:size])
        del self._received[:size]
        return decode(data)

    def _read(self) -> None:
        try:
            chunk = self._channel.receive(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError as error:
            raise StreamClosedError(str(error)) from None
        if not chunk:
            raise StreamClosedError("the peer closed the stream")
        self._received += chunk

    def _write(self, data: bytes, deadline: float | None) -> None:
        rest = memoryview(data)
        _remaining_ms(deadline)  # nothing is sent after the deadline, even if there is room
        while rest:
            try:
                rest = rest[self._channel.send(rest) :]
            except BlockingIOError:  # polled only now: nearly always there is room
                _wait(self._channel.writing, select.POLLOUT, deadline)
            except ConnectionError as error:
                raise StreamClosedError(str(error)) from None


def _wait(descriptor: int, event: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(_remaining_ms(deadline)):
        raise TimeoutError("the peer took too long")


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _remaining_ms(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    if (remaining := deadline - time.monotonic()) <= 0:
        raise TimeoutError("the peer took too long")
    return remaining * 1000
