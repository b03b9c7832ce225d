"""One connection over the gate channel, the same at both ends.

A side sends only as many bytes as the other has given it credit for, and credit comes back as bytes are taken; so a
side that does not read holds `WINDOW` bytes at most, and stops no other connection.

Timing: `read` waits for the other side, `write` for its credit.
Model: asyncio; one task reads, one writes.
Guarantee: bytes arrive in order; a direction that has ended did so behind its last byte.
Failure: ConnectionResetError once either side has reset it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from isolane.gate.frames import CHUNK, WINDOW, FrameKind, GateFrame
from isolane.protocol import ProtocolError

_READ_MOST = CHUNK // 2  # bytes of one read
_UNSENT = 64 * 1024  # bytes that wait for credit or room while `write` goes on


class DirectUser(Protocol):
    """A user of a connection that is called, instead of waiting in `read` and `write`."""

    def consume(self, data: memoryview) -> int:
        """Take as many of these bytes as there is room for; `deliver` offers the rest again."""

    def note_end(self) -> None:
        """Note that there are no more bytes, or that the connection was reset. Called again."""

    def resume(self) -> None:
        """Go on with `push`, if there is room. Called again."""


class GateConnection:
    """One end of a connection."""

    def __init__(
        self,
        number: int,
        *,
        ready: Callable[["GateConnection"], None],
        send: Callable[[GateFrame], None],
        send_data: Callable[[int, bytes | memoryview], bool],
        charge: Callable[[int], None],
        room: memoryview,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_over`: whether nothing that the other side has sent may be taken any more."""
        self.number = number
        self.sent = 0  # bytes, to the other side
        self.received = 0
        self.active_at = time.monotonic()
        self._ready = ready  # it has something to send within its credit
        self._send = send  # an urgent frame
        self._send_data = send_data  # at once, if nothing else waits
        self.charge = charge  # counts bytes that are carried elsewhere on behalf of this connection
        self._room = room  # shared by all connections of the channel
        self._is_over = is_over
        self._user: DirectUser | None = None
        # Not a list of pieces: many of one byte take 40 times their size.
        self._incoming = bytearray()
        self._taken = 0  # bytes whose credit is not returned yet
        self._outgoing = bytearray()
        self._credit = WINDOW
        self._peer_credit = WINDOW
        self._has_ended = False  # our direction; END may still wait behind bytes
        self._end_is_sent = False
        self._peer_has_ended = False
        self._reset_is_sent = False
        self._was_reset_here = False  # else it was sent as the answer to theirs
        self._reset_is_received = False
        self._is_lost = False  # the channel is gone: what has come in order is still read
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._finished = asyncio.Event()
        self._gone = asyncio.Event()

    # --- for its user
    async def read(self) -> bytes:
        """Return some bytes, none at the end of the other side's direction."""
        while not self._incoming and not self._peer_has_ended and not self.is_reset:
            self._readable.clear()
            await self._readable.wait()
        self._drop_if_over()
        if self.is_reset and not self.has_left:
            raise ConnectionResetError("the connection was reset")
        return self._take()

    async def write(self, data: bytes) -> None:
        """Send bytes, waiting while the other side does not take them."""
        if self.is_reset:
            raise ConnectionResetError("the connection was reset")
        self._enqueue(data)
        while len(self._outgoing) > _UNSENT and not self.is_reset:
            self._writable.clear()
            await self._writable.wait()
        if self.is_reset:
            raise ConnectionResetError("the connection was reset")

    def attach(self, user: DirectUser) -> None:
        """Call this user from now on."""
        self._user = user
        self.deliver()

    def room(self) -> memoryview:
        """Return where to read what is pushed next, as much as may be sent; empty if nothing before `resume`."""
        return self._room[: 0 if self._outgoing else min(CHUNK, self._credit)]

    def push(self, data: memoryview) -> None:
        """Send what was read into `room`."""
        if not self.is_reset:
            self._enqueue(data)

    def deliver(self) -> None:
        """Offer what has come to the user."""
        assert self._user is not None  # noqa: S101 - it has called this, or was attached
        self._drop_if_over()
        while self._incoming:
            with memoryview(self._incoming) as view, view[:_READ_MOST] as piece:
                taken = self._user.consume(piece)
            if not taken:
                return
            del self._incoming[:taken]
            self._note_taken(taken)
        if self.has_ended:
            self._user.note_end()

    def write_eof(self) -> None:
        """End this direction, behind what was written."""
        if not self._has_ended and not self.is_reset:
            self._has_ended = True
            self._ready(self)

    async def gone(self) -> None:
        """Wait until nobody reads what is written: it was reset, or the channel is gone."""
        await self._gone.wait()

    def reset(self) -> None:
        """End the connection at once; what is under way is dropped. Repeatable."""
        if not self._reset_is_sent and not self.is_finished:
            self._reset_is_sent = self._was_reset_here = True
            self._drop()
            self._send(GateFrame(FrameKind.RESET, self.number))

    async def finish(self, seconds: float | None) -> None:
        """End it behind what was written, or reset it if that is nothing, not even an end, or takes longer.

        None waits for ever.
        """
        if not (self.sent or self._outgoing or self._has_ended):
            self.reset()
        if self.is_reset:
            return  # the other side may never answer
        self.write_eof()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._finished.wait()
        finally:
            self.reset()

    @property
    def is_reset(self) -> bool:
        """Say whether either side has reset it."""
        return self._reset_is_sent or self._reset_is_received

    @property
    def has_ended(self) -> bool:
        """Say whether the other side has ended its direction, or the connection."""
        return self._peer_has_ended or self.is_reset

    @property
    def waits_for_end(self) -> bool:
        """Say whether all of this side is sent, and nothing but the other side's is to come."""
        return self._end_is_sent and not self.has_ended

    @property
    def is_full(self) -> bool:
        """Say whether this side may send nothing now."""
        return not self._credit and not self.is_reset

    @property
    def has_left(self) -> bool:
        """Say whether the other side reset it after it had ended its direction: it wanted no more."""
        return self._peer_has_ended and self.was_reset_by_peer

    @property
    def was_reset_by_peer(self) -> bool:
        """Say whether the other side reset it, and this one only answered."""
        return self._reset_is_received and not self._was_reset_here

    @property
    def was_ended_by_peer(self) -> bool:
        """Say whether the other side has ended its direction or all, whatever this one did then."""
        return self._peer_has_ended or self.was_reset_by_peer

    @property
    def has_unsent(self) -> bool:
        """Say whether something waits to be sent: what was written, its end, or what is not read without credit."""
        is_due = not self._end_is_sent if self._has_ended else not self._credit
        return not self.is_reset and bool(self._outgoing or is_due)

    @property
    def is_finished(self) -> bool:
        """Say whether both sides know that it is over; then its number means nothing any more."""
        if self._is_lost or (self._reset_is_sent and self._reset_is_received):
            return True
        return self._end_is_sent and self._peer_has_ended

    # --- for the channel
    def next_frame(self) -> GateFrame | None:
        """Return the next frame to send, None if nothing may be sent now."""
        if self.is_reset or self._is_lost:
            return None
        if self._outgoing and self._credit:
            return GateFrame(FrameKind.DATA, self.number, 0, self._next_chunk())
        if not self._outgoing and self._has_ended and not self._end_is_sent:
            self._end_is_sent = True
            return GateFrame(FrameKind.END, self.number)
        return None

    def note_finished(self) -> None:
        """Wake its user: both sides know that it is over."""
        self._finished.set()

    def accept(self, frame: GateFrame) -> None:
        """Take a frame of the other side; ProtocolError if it has no right to it."""
        match frame.kind:
            case FrameKind.DATA:
                self._accept_data(frame.data)
            case FrameKind.CREDIT:
                self._accept_credit(frame.number)
            case FrameKind.END:
                self._accept_end()
            case FrameKind.RESET:
                self._accept_reset()

    def _accept_data(self, data: bytes | memoryview) -> None:
        if self._peer_has_ended:
            raise ProtocolError("DATA: behind the end of its connection")
        self._peer_credit -= len(data)
        if self._peer_credit < 0:
            raise ProtocolError("DATA: more bytes than there was credit for")
        self.active_at = time.monotonic()
        self.received += len(data)
        if not self.is_reset:
            self._keep(data)

    def _keep(self, data: bytes | memoryview) -> None:
        """Let the user take them at once, and keep the rest."""
        if self._user is not None and not self._incoming:
            with memoryview(data) as view:
                taken = self._user.consume(view)
            self._note_taken(taken)
            data = data[taken:]
        self._incoming += data
        self._readable.set()

    def _accept_credit(self, number: int) -> None:
        if self._credit + number > WINDOW:
            raise ProtocolError("CREDIT: more than was used")
        self._credit += number
        if self._outgoing and not self.is_reset:
            self._ready(self)
        elif self._user is not None:
            self._user.resume()

    def _accept_end(self) -> None:
        if self._peer_has_ended:
            raise ProtocolError("END: twice for one connection")
        self._peer_has_ended = True
        self._wake_reader()

    def _accept_reset(self) -> None:
        if self._reset_is_received:
            raise ProtocolError("RESET: twice for one connection")
        self._reset_is_received = True
        if not self._reset_is_sent:
            self._reset_is_sent = True
            # What came before an end in order was meant, though nobody waits for an answer any more.
            self._drop(with_incoming=not self._peer_has_ended)
            self._send(GateFrame(FrameKind.RESET, self.number))

    def lose(self) -> None:
        """Note that the channel is gone. What has come before an end in order is still read, else it is reset."""
        self._drop_if_over()
        if self._peer_has_ended and not self.is_reset:
            self._is_lost = True
            self._outgoing.clear()
            self._wake_writer()
            self._gone.set()
        else:
            self._reset_is_sent = self._reset_is_received = True
            self._drop()

    def _drop_if_over(self) -> None:
        """Break the connection off, whatever the other side had ended in order."""
        if not self._was_reset_here and self._is_over():
            self._reset_is_sent = self._reset_is_received = self._was_reset_here = True
            self._drop()

    def _drop(self, *, with_incoming: bool = True) -> None:
        if with_incoming:
            self._incoming.clear()
        self._outgoing.clear()
        self._wake_reader()
        self._wake_writer()
        self._gone.set()

    def _take(self) -> bytes:
        """Take bytes, and return the credit for half a window or for all that there was."""
        taken = _cut(self._incoming, _READ_MOST)
        self._note_taken(len(taken))
        return taken

    def _note_taken(self, size: int) -> None:
        self._taken += size
        if self._taken >= WINDOW // 2 and not self._peer_has_ended and not self._is_lost:
            self._peer_credit += self._taken
            self._send(GateFrame(FrameKind.CREDIT, self.number, self._taken))
            self._taken = 0

    def _enqueue(self, data: bytes | memoryview) -> None:
        if not data or self._is_lost:
            return
        is_first = not self._outgoing and len(data) <= min(CHUNK, self._credit)
        if is_first and self._send_data(self.number, data):
            self._note_sent(len(data))
            return
        self._outgoing += data
        if self._credit:
            self._ready(self)

    def _next_chunk(self) -> bytes:
        chunk = _cut(self._outgoing, min(CHUNK, self._credit))
        self._note_sent(len(chunk))
        if len(self._outgoing) <= _UNSENT:
            self._wake_writer()
        return chunk

    def _note_sent(self, size: int) -> None:
        self._credit -= size
        self.sent += size
        self.active_at = time.monotonic()

    def _wake_reader(self) -> None:
        self._readable.set()
        if self._user is not None:
            self.deliver()

    def _wake_writer(self) -> None:
        self._writable.set()
        if self._user is not None:
            self._user.resume()


def _cut(buffer: bytearray, size: int) -> bytes:
    """Remove so many bytes from the front and return them."""
    if len(buffer) <= size:
        found = bytes(buffer)
        buffer.clear()
        return found
    found = bytes(memoryview(buffer)[:size])
    del buffer[:size]
    return found
