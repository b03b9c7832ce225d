"""The connection to a remote server, in clear or in TLS, as httpcore reads and writes it.

What is read is parsed at once, at the expense of all who share the loop: a server that sends much for little is read
in small pieces, and given up in the end.

Timing: reading and writing wait for the remote server, closing a second at most.
Model: async, with asyncio; httpcore's timeouts are not used, the gate has its own.
Guarantee: 64 KiB and one packet are read ahead at most; each piece has a turn of the tenant's; all is charged.
Failure: httpcore's ReadError and WriteError.
"""

import asyncio
import ssl
from typing import Any

import httpcore

from resources.gate.brokers.answer_heads import FramedHeads
from resources.gate.brokers.base import Charge
from resources.gate.brokers.share import Share

BUFFER_MAX = 64 * 1024
_READ = 32 * 1024  # bytes at once
# The same unless what was read before had a body: a thousand interim answers or frames would delay the others.
_READ_SMALL, _SMALL = 1024, 512
# Bytes of an answer that are not its body, and those that may come with each byte of it.
OVERHEAD_MAX, _PER_BYTE = 1024 * 1024, 8
_PER_FRAME = 128  # bytes of memory, for one of HTTP/2 that waits to be looked at


class RemoteStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """Keeps what has come until it is read."""

    def __init__(self, charge: Charge, share: Share) -> None:
        self._charge = charge
        self._share = share
        self._heads: FramedHeads | None = None  # in HTTP/2
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._error: Exception | None = None
        self._came = asyncio.Event()  # data, or the end
        self._room = asyncio.Event()  # for writing, or the end
        self._room.set()
        self._lost = asyncio.Event()
        self._tls: ssl.SSLObject | None = None
        self._is_closing = False
        self._read_most = _READ_SMALL
        self._overhead = 0  # bytes of this answer
        self._uncharged = 0  # bytes since the last charge
        self.has_ended = False  # there is nothing more to come
        self.was_left = False  # the remote server ended it, not we

    # --- called by asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - tells mypy
        self._transport = transport
        self._tls = transport.get_extra_info("ssl_object")
        if self.protocol == "h2":
            self._heads = FramedHeads()

    def data_received(self, data: bytes) -> None:
        """Keep the data, and have the rest wait when it is much."""
        self._buffer += data
        self._came.set()
        if len(self._buffer) > BUFFER_MAX:
            self._connected.pause_reading()

    def eof_received(self) -> None:
        """Note the end; the connection is closed then."""
        self.has_ended = True
        self.was_left |= not self._is_closing
        self._came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake all who wait."""
        self._error = exc
        self.has_ended = True
        self.was_left |= not self._is_closing
        for event in (self._came, self._room, self._lost):
            event.set()

    def pause_writing(self) -> None:
        """Have writers wait."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._room.set()

    # --- called by the broker
    def begin_answer(self) -> None:
        """Note that what is read next belongs to another answer."""
        self._overhead = 0
        self._read_most = _READ_SMALL

    def note_body(self, size: int) -> None:
        """Note that so many bytes of what was read are a piece of a body."""
        self._overhead -= size * _PER_BYTE
        self._uncharged -= size
        self._read_most = _READ if size > _SMALL else _READ_SMALL

    def charge_overhead(self) -> None:
        """Charge what has been read and is no body; a body is charged where the run gets it."""
        self._charge(self._uncharged)
        self._uncharged = 0

    # --- called by httpcore
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return some bytes, none at the end."""
        self.charge_overhead()
        while not self._buffer and not self.has_ended:
            self._came.clear()
            await self._came.wait()
        await self._share.turns.wait()
        if not self._buffer and self._error:
            raise httpcore.ReadError(str(self._error))
        size = min(max_bytes, self._piece())
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        is_short = self._weigh(data)
        self._uncharged += len(data)
        self._read_most = _READ_SMALL
        if self._overhead > OVERHEAD_MAX or not is_short:
            raise httpcore.ReadError("the remote server sends too much beside its answer")
        if len(self._buffer) <= BUFFER_MAX and not self.has_ended:
            self._connected.resume_reading()
        return data

    def _piece(self) -> int:
        """Return how many bytes may be parsed at once: in HTTP/2 much of one frame, and few frames."""
        if self._heads is None:
            return self._read_most
        return max(_READ_SMALL, min(_READ, self._heads.frame_left))

    def _weigh(self, data: bytes) -> bool:
        """Add to what has come beside the body, and say whether all blocks of headers are short."""
        self._overhead = max(self._overhead, 0) + len(data)
        if self._heads is None:
            return True
        frames = self._heads.frames
        is_short = self._heads.accept(data)
        self._overhead += _PER_FRAME * (self._heads.frames - frames)
        return is_short

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write the bytes, waiting while the remote server does not read."""
        if not self._lost.is_set():
            self._connected.write(buffer)
            await self._room.wait()
        if self._lost.is_set() or self._connected.is_closing():
            raise httpcore.WriteError("the remote server has ended the connection")

    async def aclose(self) -> None:
        """Close the connection; what was not sent is dropped."""
        self._is_closing = True
        if self._lost.is_set():
            return
        if self._connected.get_write_buffer_size():
            self._connected.abort()
        else:
            self._connected.close()  # TLS may have to tell the server
        try:
            await self._lost.wait()
        except asyncio.CancelledError:  # nobody would be there to see its end
            self._connected.abort()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return the information that httpcore asks for."""
        return bool(self._buffer) or self.has_ended if info == "is_readable" else None

    @property
    def protocol(self) -> str:
        """Return the protocol that TLS agreed on."""
        return (self._tls and self._tls.selected_alpn_protocol()) or "http/1.1"

    @property
    def _connected(self) -> asyncio.Transport:
        assert self._transport is not None  # noqa: S101 - asyncio hands it over first
        return self._transport
