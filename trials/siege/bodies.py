"""Attack with request bodies far beyond every limit, sent again as soon as the server refuses them.

Timing: for the given seconds.
Model: async, one task per body.
Guarantee: best-effort; all pieces share the same bytes, so little memory is used.
Failure: the end of a body is counted, and the next one begins.
"""

import asyncio
from collections.abc import Sequence

from trials.siege.http import head, parse_head
from trials.siege.plan import ADDRESS, BODY_BYTES, RENEWAL_SECONDS, Body
from trials.siege.tally import Tally

PIECE = b"x" * 65_536
CHUNK = f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0


async def send(port: int, bodies: Sequence[Body], seconds: float) -> Tally:
    """Keep all of these bodies in transfer, each sent again and again."""
    tally = Tally()
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for body in bodies:
                group.create_task(_repeat(port, body, tally))
    except TimeoutError:
        pass
    return tally


async def _repeat(port: int, body: Body, tally: Tally) -> None:
    loop = asyncio.get_running_loop()
    kind = f"{body.path} {'chunked' if body.chunked else 'with a length'}"
    while True:
        began = loop.time()
        tally.tries += 1
        try:
            got = await _one(port, body, tally)
        except (OSError, EOFError):
            got = "no answer"  # or it was lost, because more of the body was in transfer
        tally.note(kind, got, loop.time() - began)
        await asyncio.sleep(RENEWAL_SECONDS)


async def _one(port: int, body: Body, tally: Tally) -> str:
    async with asyncio.timeout(CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(ADDRESS, port)
    answer = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
    try:
        await _pieces(writer, body, answer, tally)
        async with asyncio.timeout(ANSWER_SECONDS):
            return str(parse_head(await answer).status)
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
        writer.transport.abort()


async def _pieces(
    writer: asyncio.StreamWriter, body: Body, answer: "asyncio.Task[bytes]", tally: Tally
) -> None:
    """Send until all is sent, the server answers or the connection is closed."""
    framing = {"Transfer-Encoding": "chunked"} if body.chunked else {"Content-Length": BODY_BYTES}
    headers = {"Host": "localhost", "Content-Type": "application/json", **framing}
    writer.write(head("POST", body.path, {name: str(value) for name, value in headers.items()}))
    piece = CHUNK if body.chunked else PIECE
    for _ in range(BODY_BYTES // len(PIECE)):
        if answer.done():
            return
        writer.write(piece)
        try:
            await writer.drain()
        except OSError:  # an answer, if any, was sent before
            return
        tally.sent_bytes += len(PIECE)
        await asyncio.sleep(0)  # drain() does not yield while the kernel buffers all
    if body.chunked:
        writer.write(LAST_CHUNK)
