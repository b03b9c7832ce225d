"""The end of an HTTP/1.1 connection that a run speaks to: requests are parsed, answers are framed.

Timing: as long as its connection, and a second at its end.
Model: async; one request at a time.
Guarantee: what is read ahead stays within one read of the connection.
Failure: HttpRefused for what is not HTTP; the errors of the connection.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from http import HTTPStatus

from foundation.linear_h11 import h11
from resources.gate.brokers.base import RunConnection
from resources.gate.brokers.http_headers import HEADERS_MAX, Headers
from resources.gate.brokers.http_refused import HttpRefused
from resources.gate.brokers.share import Share
from resources.gate.record import ConnectionReason

_DRAINING = 1.0  # seconds
_REASON_MAX = 300  # characters


class HttpInside:
    """Reads requests from a run, and writes answers to it."""

    def __init__(self, connection: RunConnection, share: Share) -> None:
        self._connection = connection
        self._share = share
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADERS_MAX)
        self._reading: asyncio.Task[bytes] | None = None
        self._is_whole = asyncio.Event()  # the request was read to its end
        self._is_head = False  # whose answer has no body

    async def next_request(self) -> h11.Request | None:
        """Return the next request, none at the end of the connection."""
        if self._state.our_state is h11.DONE:
            self._state.start_next_cycle()
        self._is_whole.clear()
        event = await self._next_event()
        if not isinstance(event, h11.Request):
            return None
        self._is_head = event.method == b"HEAD"
        return event

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the body as it comes; the run is told to send it, if it waits for that."""
        if self._state.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        while isinstance(event := await self._next_event(), h11.Data):
            yield bytes(event.data)
            await self._share.turns.wait()  # parts may be many and small
        self._is_whole.set()

    async def left(self) -> None:
        """Return when the run has gone instead of waiting for its answer."""
        await self._is_whole.wait()
        while not self._state.trailing_data[0]:  # the next request has not begun
            if not (data := await self._read()):
                return
            self._state.receive_data(data)
        await asyncio.Event().wait()

    async def gone(self) -> None:
        """Return when nobody reads what is written."""
        await self._connection.gone()

    async def answer(self, status: int, reason: bytes, headers: Headers) -> None:
        """Begin an answer."""
        try:
            response = h11.Response(status_code=status, reason=reason, headers=headers)
        except h11.LocalProtocolError:
            raise _not_in_order() from None
        await self._send(response)

    async def send(self, data: bytes) -> None:
        """Send a part of the answer's body."""
        await self._send(h11.Data(data=data))

    async def end_answer(self) -> None:
        """End the answer in order."""
        await self._send(h11.EndOfMessage())

    async def refuse(self, refused: HttpRefused) -> bool:
        """Give the answer of a refusal, unless another one has begun; say whether it was given."""
        if self._state.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        text = f"{refused.answer}\n".encode()
        headers = [
            (b"Content-Type", b"text/plain; charset=utf-8"),
            (b"Content-Length", str(len(text)).encode()),
            (b"Connection", b"close"),
            *refused.proxy_status,
        ]
        await self.answer(refused.status, HTTPStatus(refused.status).phrase.encode(), headers)
        if not self._is_head:
            await self.send(text)
        await self.end_answer()
        return True

    async def drain(self) -> None:
        """End this direction, and read on for a moment: unread bytes would make the kernel drop the answer."""
        self._connection.write_eof()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_DRAINING):
                while await self._read():
                    pass

    @property
    def may_go_on(self) -> bool:
        """Say whether another request can follow."""
        return self._state.our_state is h11.DONE and self._state.their_state is h11.DONE

    async def close(self) -> None:
        """Read no more."""
        if self._reading:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                self._state.receive_data(await self._read())
        except h11.RemoteProtocolError as error:
            reason = f"the request is not in order: {error}"[:_REASON_MAX]  # it quotes the run
            status = error.error_status_hint or 400
            raise HttpRefused(ConnectionReason.PROTOCOL, status, reason) from None
        assert not isinstance(event, type) or event is h11.PAUSED  # noqa: S101 - tells mypy
        return event

    async def _read(self) -> bytes:
        # Shielded, and kept until the turn: bytes that a cancelled wait had already received would be lost.
        self._reading = self._reading or asyncio.ensure_future(self._connection.read())
        await asyncio.shield(self._reading)
        await self._share.turns.wait()
        data, self._reading = self._reading.result(), None
        return data

    async def _send(self, event: h11.Event) -> None:
        try:
            data = self._state.send(event)
        except h11.LocalProtocolError:
            raise _not_in_order() from None
        if data:
            await self._connection.write(data)


def _not_in_order() -> HttpRefused:
    return HttpRefused(
        ConnectionReason.PROTOCOL, 502, "the answer of the remote server is not in order"
    )
