"""The transport of a protocol over TLS, once the handshake is done. Not asyncio's own: a server can keep that open.

Timing: no call waits; each 64 KiB at most have a turn of the tenant's. Closing takes `close_seconds` at most.
Model: asyncio; on top of a plain transport, which has the socket.
Guarantee: bytes in order; only a server that has said so has ended; the protocol is told once that it is over.
Failure: `connection_lost` gets the OSError, ConnectionResetError if the server did not say that it ends.
"""

import asyncio
import contextlib
import ssl
from typing import Any

from resources.gate.brokers.base import Charge
from resources.gate.brokers.loop_turns import LoopTurns
from resources.gate.brokers.tls_handshake import TlsSession

# With a record of 16 KiB whose end is still to come, no more than 64 KiB.
_PIECE = 48 * 1024  # bytes of TLS that are decrypted at once
_PIECE_SMALL = 1024  # the same behind a piece with little data: each record takes time of its own
_ORDINARY = 4  # bytes of TLS for each byte of data, and fewer
_RECORD = 16 * 1024  # bytes in a record at most
# Of TLS itself to a server's records, over the whole connection: more than 2000 changes of its keys.
_ANSWERS_MAX = 64 * 1024
# Of TLS itself from a server, beside its data, and those that may come with each byte of it.
_BESIDE_MAX, _PER_BYTE = 64 * 1024, 64


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """A transport to its protocol, a protocol to the plain transport."""

    def __init__(
        self,
        session: TlsSession,
        protocol: asyncio.Protocol,
        *,
        turns: LoopTurns,
        charge: Charge,
        close_seconds: float,
    ) -> None:
        """`charge` counts bytes that have come beside the data."""
        super().__init__()
        self._turns = turns
        self._charge = charge
        self._tls, self._incoming, self._outgoing = session
        self._protocol = protocol
        self._close_seconds = close_seconds
        self._loop = asyncio.get_running_loop()
        self._received = memoryview(b"")  # and not decrypted yet
        self._answered = 0  # bytes
        self._beside = 0  # bytes that have come without data
        self._piece = _PIECE_SMALL
        self._error: OSError | None = None
        self._is_due = False  # there will be another turn
        self._is_paused = False  # by the protocol
        self._is_closing = False
        self._has_ended = False  # the server has said so
        self._is_cut_off = False  # there are no more bytes from the server
        self._ending: asyncio.TimerHandle | None = None

    # --- called by the plain transport
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with what the server has sent behind the handshake."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - tells mypy
        self._plain = transport
        self._protocol.connection_made(self)
        self._take_later()

    def data_received(self, data: bytes) -> None:
        """Decrypt a piece now and the rest later."""
        # Seldom more than `data`: nothing is read while some of it waits.
        rest = self._received
        self._received = memoryview(b"".join((rest, data)) if rest else data)
        if not self._is_due:
            if self._turns.take():
                self._take()
            else:
                self._take_later()
        if self._is_due:
            self._plain.pause_reading()

    def eof_received(self) -> bool:
        """Note that nothing more comes; what has come is decrypted first."""
        self._is_cut_off = True
        self._take_later()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol; this comes once."""
        self._is_closing = True
        if self._ending:
            self._ending.cancel()
        self._protocol.connection_lost(self._error or exc)

    def pause_writing(self) -> None:
        """Have the protocol wait: the server does not read."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Let the protocol go on."""
        self._protocol.resume_writing()

    # --- called by the protocol and its user
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send these bytes."""
        rest = memoryview(data)
        try:
            while rest and not self._is_closing:
                rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as error:
            self._fail(error)
        self._send()

    def close(self) -> None:
        """Tell the server that this is the end, behind what was written; a server that reads too little is given up."""
        if self._is_closing:
            return
        self._is_closing = True
        with contextlib.suppress(OSError):  # the server has not answered, which is not waited for
            self._tls.unwrap()
        self._send()
        self._plain.close()
        self._ending = self._loop.call_later(self._close_seconds, self._plain.abort)

    def abort(self) -> None:
        """End it at once."""
        self._is_closing = True
        self._plain.abort()

    def is_closing(self) -> bool:
        """Say whether it is over, or will be soon."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Keep what comes to the kernel."""
        self._is_paused = True
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Hand over what comes."""
        if self._is_paused:
            self._is_paused = False
            self._take_later()

    def can_write_eof(self) -> bool:
        """Say that one direction cannot end alone."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the server has not read."""
        return self._plain.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection."""
        if name == "ssl_object":
            return self._tls
        return (
            self._tls.context if name == "sslcontext" else self._plain.get_extra_info(name, default)
        )

    # --- decrypting
    def _take_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._turns.call(self._take)

    def _take(self) -> None:
        """Hand over a piece of what has come, and the end if it is there."""
        self._is_due = False
        if self._is_paused or self._is_closing:
            return
        piece, self._received = self._received[: self._piece], self._received[self._piece :]
        self._incoming.write(piece)
        data = self._decrypted()
        self._weigh(len(piece), len(data))
        self._answer()
        if data:
            self._protocol.data_received(data)
        if not self._is_closing:
            self._go_on()

    def _decrypted(self) -> bytes:
        """Return all that can be read; note what comes behind it, the end or an error."""
        pieces = []
        try:
            while piece := self._tls.read(_RECORD):
                pieces.append(piece)
            self._has_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._error = error
        return b"".join(pieces)

    def _weigh(self, size: int, data: int) -> None:
        """Give a server up that sends much of TLS and little data, such as changes of keys that want no answer."""
        self._charge(size - data)  # below zero if data has waited for the end of its record
        if size:
            self._piece = _PIECE if size <= _ORDINARY * data else _PIECE_SMALL
        self._beside = max(self._beside + size - data * _PER_BYTE, 0)
        if self._beside > _BESIDE_MAX:
            self._error = ConnectionAbortedError("the server sends too little within TLS")

    def _answer(self) -> None:
        """Send what reading called for; a server that wants many answers might not read them."""
        self._answered += self._outgoing.pending
        if self._answered > _ANSWERS_MAX:
            self._error = ConnectionAbortedError("the server has too many questions within TLS")
        self._send()

    def _go_on(self) -> None:
        if self._error:
            self._fail(self._error)
        elif self._has_ended:
            self._protocol.eof_received()
            self.close()
        elif self._received:
            self._plain.pause_reading()
            self._take_later()
        elif self._is_cut_off:
            self._fail(ConnectionResetError("the server broke it off"))
        elif not self._is_paused:
            self._plain.resume_reading()

    def _fail(self, error: OSError) -> None:
        self._error = self._error or error
        self._send()
        self.abort()

    def _send(self) -> None:
        self._plain.write(self._outgoing.read())
