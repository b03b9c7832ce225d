"""The little of HTTP that attackers and victim need. Who connects names a port: the address is always this machine.

Timing: as long as the server takes, up to the caller's time limit. Model: async. Guarantee: best-effort; nothing is
tried again. Failure: NoAnswer says in a few words how a request ended without an answer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from trials.siege.plan import ADDRESS


class NoAnswer(Exception):
    """A request that got no answer; the text can be counted: it names no address and no port."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the server said; names of headers in small letters."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def header(self, name: str) -> str:
        """The first of that name, or nothing."""
        return next(iter(self.all(name)), "")

    def all(self, name: str) -> list[str]:
        """Every value of that name."""
        return [value for found, value in self.headers if found == name]


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    """Request line and header, with the empty line at the end."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def parse_head(text: bytes) -> Answer:
    """An answer without its body."""
    first, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Answer(
        status=int(first.split(" ", 2)[1]),
        headers=tuple((name.lower(), value.strip()) for name, _, value in pairs),
    )


class Connection:
    """A connection that is kept as long as the server keeps it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._over = False

    @classmethod
    async def open(cls, port: int, *, source: str = ADDRESS) -> Self:
        """Connect from one of this machine's loopback addresses."""
        try:
            pair = await asyncio.open_connection(ADDRESS, port, local_addr=(source, 0))
        except OSError as error:
            raise NoAnswer(f"no connection: {type(error).__name__}") from None
        return cls(*pair)

    @property
    def usable(self) -> bool:
        """Whether another request may be sent over it."""
        return not (self._over or self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        """At once, whatever is under way."""
        self._over = True
        self._writer.transport.abort()

    async def send(self, call: Call) -> Answer:
        """Send one request and read the whole answer; a connection that failed is of no use any more."""
        length = {"Content-Length": str(len(call.body))} if call.method == "POST" else {}
        text = head(call.method, call.path, {**call.headers, **length})
        try:
            self._writer.write(text + call.body)
            await self._writer.drain()
            return await self._answer()
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self.close()
            raise NoAnswer(f"connection lost: {type(error).__name__}") from None
        except BaseException:
            self.close()
            raise

    async def _answer(self) -> Answer:
        found = parse_head(await self._reader.readuntil(b"\r\n\r\n"))
        self._over = found.header("connection").lower() == "close"
        return Answer(status=found.status, headers=found.headers, body=await self._body(found))

    async def _body(self, found: Answer) -> bytes:
        if found.header("transfer-encoding") == "chunked":
            return await self._chunks()
        if found.status in {204, 304}:
            return b""
        if length := found.header("content-length"):
            return await self._reader.readexactly(int(length))
        self._over = True
        return await self._reader.read()

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self._reader.readline()).strip() or b"0", 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readline()
        return b"".join(parts)


class Lane:
    """One request after the other, over the same connection as long as the server keeps it."""

    def __init__(self, port: int, *, source: str = ADDRESS) -> None:
        self._port = port
        self._source = source
        self._connection: Connection | None = None

    async def send(self, call: Call, seconds: float) -> Answer:
        """Over the connection of the last request, if it still stands."""
        try:
            async with asyncio.timeout(seconds):
                if self._connection is None or not self._connection.usable:
                    self.close()
                    self._connection = await Connection.open(self._port, source=self._source)
                return await self._connection.send(call)
        except TimeoutError:
            raise NoAnswer(f"no answer in {seconds:.0f} s") from None

    def close(self) -> None:
        """Drop the connection, if there is one."""
        if self._connection:
            self._connection.close()
            self._connection = None


async def once(port: int, call: Call, seconds: float) -> Answer:
    """One request over a connection of its own."""
    lane = Lane(port)
    try:
        return await lane.send(call, seconds)
    finally:
        lane.close()
