"""A minimal HTTP client for attackers and victim. It takes a port only: the address is always this machine.

Timing: as long as the server takes, up to the caller's time limit.
Model: async.
Guarantee: best-effort; nothing is retried.
Failure: NoAnswer names in a few words how a request ended.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from trials.siege.plan import ADDRESS


class NoAnswer(Exception):
    """A request without an answer; its text has no address or port, so that equal ones can be counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One response; header names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the first value of a header, or an empty text."""
        return next(iter(self.all(name)), "")

    def all(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for found, value in self.headers if found == name]


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    """Return request line and headers, with the empty line at the end."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def parse_head(text: bytes) -> Answer:
    """Parse the head of a response."""
    first, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Answer(
        status=int(first.split(" ", 2)[1]),
        headers=tuple((name.lower(), value.strip()) for name, _, value in pairs),
    )


class Connection:
    """A connection that is reused as long as the server keeps it open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._closing = False

    @classmethod
    async def open(cls, port: int, *, source: str = ADDRESS) -> Self:
        """Connect from one of the loopback addresses."""
        try:
            pair = await asyncio.open_connection(ADDRESS, port, local_addr=(source, 0))
        except OSError as error:
            raise NoAnswer(f"no connection: {type(error).__name__}") from None
        return cls(*pair)

    @property
    def usable(self) -> bool:
        """Return True if another request can be sent."""
        return not (self._closing or self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        """Close at once, even during a request."""
        self._closing = True
        self._writer.transport.abort()

    async def send(self, call: Call) -> Answer:
        """Send one request and read the whole answer; after a failure the connection is closed."""
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
        self._closing = found.header("connection").lower() == "close"
        return Answer(status=found.status, headers=found.headers, body=await self._body(found))

    async def _body(self, found: Answer) -> bytes:
        if found.header("transfer-encoding") == "chunked":
            return await self._chunks()
        if found.status in {204, 304}:
            return b""
        if length := found.header("content-length"):
            return await self._reader.readexactly(int(length))
        self._closing = True
        return await self._reader.read()

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self._reader.readline()).strip() or b"0", 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readline()
        return b"".join(parts)


class Client:
    """Send one request after the other, over one connection as long as the server keeps it open."""

    def __init__(self, port: int, *, source: str = ADDRESS) -> None:
        self._port = port
        self._source = source
        self._connection: Connection | None = None

    async def send(self, call: Call, seconds: float) -> Answer:
        """Send over the connection of the last request, if it is still open."""
        try:
            async with asyncio.timeout(seconds):
                if self._connection is None or not self._connection.usable:
                    self.close()
                    self._connection = await Connection.open(self._port, source=self._source)
                return await self._connection.send(call)
        except TimeoutError:
            raise NoAnswer(f"no answer in {seconds:.0f} s") from None

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection:
            self._connection.close()
            self._connection = None


async def once(port: int, call: Call, seconds: float) -> Answer:
    """Send one request over a connection of its own."""
    client = Client(port)
    try:
        return await client.send(call, seconds)
    finally:
        client.close()
