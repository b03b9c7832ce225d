"""The relay between a run and a remote server: bytes both ways, as they are.

Timing: as long as the connection; a side that cannot be told of the end, or has left, has seconds without progress.
Model: asyncio; one task per direction, each holds one piece of 64 KiB and what the transport buffers.
Guarantee: bytes stay in order; the end of one direction is passed on, after its last byte.
Failure: the error of the direction that broke, OSError as a rule; the other one is cancelled.
"""

import asyncio

from resources.gate.brokers.base import RunConnection

PIECE = 64 * 1024
_SILENCE_SECONDS = 5.0


async def relay(
    inside: RunConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Send bytes both ways until both directions have ended, one broke, or the run has left.

    TLS does not end one direction alone here: when the server ends, all ends; when the run ends, once the server
    is silent.
    """
    ways = _Ways(inside, reader, writer)
    sending = asyncio.create_task(ways.send())
    answering = asyncio.create_task(ways.answer())
    leaving = asyncio.create_task(inside.gone())
    try:
        await _until_over(ways, sending, answering, leaving)
    finally:
        for task in (sending, answering, leaving):
            task.cancel()
        ended = await asyncio.gather(sending, answering, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error


_Task = asyncio.Task[None]


async def _until_over(ways: "_Ways", sending: _Task, answering: _Task, leaving: _Task) -> None:
    """Wait until there is nothing more to do, or to expect."""
    both = {sending, answering}
    await asyncio.wait({*both, leaving}, return_when=asyncio.FIRST_COMPLETED)
    while not leaving.done() and not _broke(both) and (left := _pending(both)):
        if not ways.can_half_close:
            if left == {answering}:
                await ways.while_moving(answering, leaving)
            break  # else the server has ended
        await asyncio.wait({*left, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if leaving.done() and not sending.done():
        # It may have ended in order before it left.
        await ways.while_moving(sending)
        if not sending.done():
            raise ConnectionResetError("the run has left, and the server does not read")


def _pending(tasks: set[_Task]) -> set[_Task]:
    return {task for task in tasks if not task.done()}


def _broke(tasks: set[_Task]) -> bool:
    return any(task.done() and task.exception() for task in tasks)


class _Ways:
    """Both directions, and how many pieces they have carried."""

    def __init__(
        self, inside: RunConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._inside = inside
        self._reader = reader
        self._writer = writer
        self._pieces = 0
        self.can_half_close = writer.can_write_eof()

    async def send(self) -> None:
        """Carry what the run sends."""
        while piece := await self._inside.read():
            self._writer.write(piece)
            await self._writer.drain()
            self._pieces += 1
        if self.can_half_close:
            self._writer.write_eof()

    async def answer(self) -> None:
        """Carry what the remote server sends."""
        while piece := await self._reader.read(PIECE):
            self._pieces += 1
            await self._inside.write(piece)
        self._inside.write_eof()

    async def while_moving(self, task: _Task, *others: _Task) -> None:
        """Wait until this task or another one is done, or nothing has been carried for some seconds."""
        before = -1
        waited = {task, *others}
        while not any(each.done() for each in waited) and self._pieces != before:
            before = self._pieces
            await asyncio.wait(
                waited, timeout=_SILENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
