"""All connections of a run over its gate channel, the same at both ends.

Frames of different connections take turns; frames without bytes go first.

Timing: no call waits; it reads and writes as the channel allows.
Model: asyncio; add_reader and add_writer on two pipes.
Guarantee: memory is bounded by the connections, whatever the other side sends or does not read.
Failure: `on_end` is called once with the ProtocolError, or None if the other side is gone.
"""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from select import PIPE_BUF
from weakref import WeakKeyDictionary

from isolane.channel import Channel
from isolane.gate.connection import GateConnection
from isolane.gate.frames import FrameKind, FrameReader, GateFrame, encode, head_of_data
from isolane.protocol import ProtocolError

# Bytes at once, as many as the channel holds; then it is the turn of others in the loop.
_READ = 256 * 1024
# The same after small frames: more than a thousand of them would delay the others.
_READ_SMALL, _SMALL = 16 * 1024, 1024
_FRAMES_MOST = 256  # at once, since even what is read behind large frames may be small ones
_WRITE = 64 * 1024  # bytes of frames that are put together
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


class Multiplexer:
    """One end of a gate channel."""

    def __init__(
        self,
        channel: Channel,
        *,
        accepted: frozenset[FrameKind],
        on_frame: Callable[[GateFrame], None],
        on_end: Callable[[ProtocolError | None], None],
        on_bytes: Callable[[int], None] = lambda _size: None,
        pause: Callable[[int, int], float] = lambda _frames, _size: 0.0,
        urgent_most: float = math.inf,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`on_frame` gets the frames that belong to no connection, `on_bytes` the size of each piece that is carried.

        `pause` returns for how many seconds nothing is read after so many frames of so many bytes. Nor is anything
        read while more than `urgent_most` frames wait to be sent; one side has to read always. If it `is_over`,
        nothing of what the other side has sent is taken any more.
        """
        self.connections: dict[int, GateConnection] = {}
        self._channel = channel
        self._on_frame = on_frame
        self._on_end = on_end
        self._pause = pause
        self._urgent_most = urgent_most
        self._is_over = is_over
        self._on_bytes = on_bytes
        self._reader = FrameReader(accepted)
        # What is read is sent on or copied before anything else is read.
        self._room = _room_of(asyncio.get_running_loop())
        self._read_most = _READ_SMALL
        self._loop = asyncio.get_running_loop()
        self._urgent: deque[bytes] = deque()
        self._turns: deque[GateConnection] = deque()
        self._waiting: set[int] = set()  # the numbers of connections in `_turns`
        self._unsent: bytes | memoryview = b""
        self._is_writing = False  # waits for room in the channel
        self._is_reading = False
        self._is_paused = False
        self._is_holding = False  # frames that were read, and wait for the next turn
        self._is_closed = False
        self._read_or_wait()

    def open(self, number: int) -> GateConnection:
        """Begin a connection."""
        connection = GateConnection(
            number,
            ready=self._take_turn,
            send=self.send,
            send_data=self._send_data,
            charge=self._on_bytes,
            room=self._room,
            is_over=self._is_over,
        )
        self.connections[number] = connection
        return connection

    def send(self, frame: GateFrame) -> None:
        """Send a frame without bytes, before those with bytes."""
        if not self._is_closed:
            self._send_urgent(encode(frame))
            self._forget_finished(frame.connection)

    def close(self) -> None:
        """Take what has come already and close the channel; connections that have not ended are reset. Repeatable."""
        self._read_rest()
        self._close()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._read_or_wait()
        if self._is_writing:
            self._loop.remove_writer(self._channel.writing)
        self._channel.close()
        for connection in self.connections.values():
            connection.lose()
            connection.note_finished()
        self.connections.clear()

    # --- reading
    def _read(self) -> None:
        try:
            size = self._channel.receive_into(self._room[: self._read_most])
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._end(None)
            return
        self._take(self._room[:size])

    def _take(self, data: bytes | memoryview) -> None:
        """Accept the frames in these bytes and before them, as many as others in the loop can wait for."""
        if self._is_over():
            self._end(None)
            return
        frames, size = 0, len(data)
        try:
            for frame in self._reader.feed(data, _FRAMES_MOST):
                self._accept(frame)
                if self._is_closed:
                    return
                frames += 1
        except ProtocolError as error:
            self._end(error)
            return
        self._read_most = _READ if size > frames * _SMALL else _READ_SMALL
        self._is_holding = frames >= _FRAMES_MOST
        # Each look counts as a frame, however little came: bytes may come one by one.
        seconds = self._pause(max(frames, 1), size)
        if seconds or self._is_holding:
            self._is_paused = True
            self._loop.call_later(seconds, self._resume)
        self._read_or_wait()

    def _read_rest(self) -> None:
        """Take what the other side has sent before it went."""
        if self._is_closed:
            return
        if self._is_holding:
            self._take(b"")
        else:
            self._read_most = _READ
            self._read()

    def _resume(self) -> None:
        self._is_paused = False
        if self._is_holding and not self._is_closed:
            self._take(b"")
        else:
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Read, unless the other side is to wait or does not read its own."""
        wanted = not (self._is_closed or self._is_paused or len(self._urgent) > self._urgent_most)
        if wanted and not self._is_reading:
            self._loop.add_reader(self._channel.reading, self._read)
        elif self._is_reading and not wanted:
            self._loop.remove_reader(self._channel.reading)
        self._is_reading = wanted

    def _accept(self, frame: GateFrame) -> None:
        connection = self.connections.get(frame.connection)
        if frame.kind is FrameKind.DATA:
            if connection is None:
                raise ProtocolError("DATA: of a connection that is over or never was")
            connection.accept(frame)
            self._on_bytes(len(frame.data))
        elif connection is not None and frame.kind is not FrameKind.DIAL:
            connection.accept(frame)
            self._forget_finished(frame.connection)
        elif frame.kind not in (FrameKind.CREDIT, FrameKind.END, FrameKind.RESET):
            self._on_frame(frame)
        # Else it was sent before the other side knew that the connection is over.

    def _end(self, error: ProtocolError | None) -> None:
        if not self._is_closed:
            self._close()
            self._on_end(error)

    def _forget_finished(self, number: int) -> None:
        connection = self.connections.get(number)
        if connection is not None and connection.is_finished:
            del self.connections[number]
            connection.note_finished()

    # --- writing
    def _send_urgent(self, data: bytes) -> None:
        """Send it at once if the channel takes it whole, or with the next frames."""
        if not self._is_writing and len(data) <= PIPE_BUF:
            # There may be no room; or the other side is gone, which is found next.
            with contextlib.suppress(OSError):
                self._channel.send(data)
                return
        self._urgent.append(data)
        self._write_soon()

    def _send_data(self, number: int, data: bytes | memoryview) -> bool:
        """Send bytes at once, as they are; false if something else waits, behind which they belong."""
        if self._is_writing or self._is_closed:
            return False
        head = head_of_data(number, len(data))
        self._on_bytes(len(data))
        try:
            sent = self._channel.send_pieces((head, data))
        except OSError:  # there is no room; or the other side is gone, which the next try finds
            sent = 0
        if sent < len(head) + len(data):
            self._unsent = _rest(head, data, sent)
            self._is_writing = True
            self._loop.add_writer(self._channel.writing, self._go_on)
        return True

    def _take_turn(self, connection: GateConnection) -> None:
        if connection.number not in self._waiting and not self._is_closed:
            self._waiting.add(connection.number)
            self._turns.append(connection)
            self._write_soon()

    def _write_soon(self) -> None:
        """Write when this turn of the loop has collected all frames."""
        if not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._begin_writing)

    def _begin_writing(self) -> None:
        if self._is_closed:
            return
        if not self._write():
            self._loop.add_writer(self._channel.writing, self._go_on)

    def _go_on(self) -> None:
        if self._write() and not self._is_closed:
            self._loop.remove_writer(self._channel.writing)

    def _write(self) -> bool:
        """Write as much as there is room for; true if nothing is left."""
        while data := self._unsent or self._next_frames():
            try:
                sent = self._channel.send(data)
            except BlockingIOError:
                self._unsent = data
                self._read_or_wait()
                return False
            except OSError:
                self._read_rest()
                self._end(None)
                return True
            self._unsent = memoryview(data)[sent:] if sent < len(data) else b""
        self._is_writing = False
        self._read_or_wait()
        return True

    def _next_frames(self) -> bytes:
        found: list[bytes] = []
        size = 0
        while size < _WRITE and (frame := self._next_frame()):
            found.append(frame)
            size += len(frame)
        return b"".join(found)

    def _next_frame(self) -> bytes:
        if self._urgent:
            return self._urgent.popleft()
        while self._turns:
            connection = self._turns.popleft()
            frame = connection.next_frame()
            if frame is None:
                self._waiting.discard(connection.number)
                continue
            self._turns.append(connection)  # behind the others
            if frame.data:
                self._on_bytes(len(frame.data))
            self._forget_finished(connection.number)
            return encode(frame)
        return b""


def _room_of(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Return the room that all channels of a loop read into, one after the other."""
    if loop not in _rooms:
        _rooms[loop] = memoryview(bytearray(_READ))
    return _rooms[loop]


def _rest(head: bytes, data: bytes | memoryview, sent: int) -> bytes:
    """Return a copy of what is left of both."""
    if sent < len(head):
        return head[sent:] + data
    return bytes(data[sent - len(head) :])
