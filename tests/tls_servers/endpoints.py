"""The endpoints of the HTTP servers: an echo, a download, an upload, a stream of events, a redirect, a model."""

import asyncio
import hashlib
import json
import queue
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

_CHUNK = 16384
_POLL = 0.01  # seconds between looks at the queue of events, which is filled by another thread


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as the server saw it; header names in lower case, in their order."""

    version: str  # HTTP/1.1 or HTTP/2
    method: str
    target: str  # as it was sent: a path, or what else a client makes of it
    headers: tuple[tuple[str, str], ...]
    protocol: str | None  # that TLS agreed on
    body_bytes: int
    body_sha256: str

    def header(self, name: str) -> str | None:
        """Return the first header of this name."""
        return next((value for found, value in self.headers if found == name), None)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer; without a length its body ends when it ends."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    length: int | None = None
    body: AsyncIterator[bytes] = field(repr=False)


class Endpoints:
    """Answers, and remembers the requests.

    `/bytes/N` downloads, `/upload` counts, `/events` sends each text of `events` until there is a None,
    `/redirect?to=URL` sends elsewhere, `…/chat/completions` answers as a model, everything else is echoed.
    """

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.events: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def answer(self, seen: Seen) -> Reply:
        """Remember a request, and return its answer."""
        self.requests.append(seen)
        url = urlsplit(seen.target)
        first, _, rest = url.path.lstrip("/").partition("/")
        if url.path.endswith("/chat/completions"):
            return _chat(seen)
        if first == "bytes":
            return Reply(length=int(rest), body=_zeros(int(rest)))
        if first == "upload":
            return _json({"received": seen.body_bytes, "sha256": seen.body_sha256})
        if first == "events":
            kind = ("content-type", "text/event-stream")
            return Reply(headers=(kind,), body=self._events())
        if first == "redirect":
            to = ("location", parse_qs(url.query)["to"][0])
            return Reply(status=302, headers=(to,), length=0, body=_once(b""))
        return _echo(seen)

    async def _events(self) -> AsyncIterator[bytes]:
        while True:
            try:
                text = self.events.get_nowait()
            except queue.Empty:
                await asyncio.sleep(_POLL)
                continue
            if text is None:
                return
            yield f"data: {text}\n\n".encode()


class Body:
    """Size and digest of a request body that is not kept."""

    def __init__(self) -> None:
        self.length = 0
        self._hash = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Count some of it."""
        self.length += len(data)
        self._hash.update(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _echo(seen: Seen) -> Reply:
    return _json(
        {
            "version": seen.version,
            "method": seen.method,
            "target": seen.target,
            "headers": [list(pair) for pair in seen.headers],
            "protocol": seen.protocol,
            "authorization": seen.header("authorization"),
            "received": seen.body_bytes,
        }
    )


def _chat(seen: Seen) -> Reply:
    """Answer with the protocol, and never with the key."""
    message = {"role": "assistant", "content": seen.version}
    return _json({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})


def _json(told: dict[str, object]) -> Reply:
    body = json.dumps(told).encode()
    kind = ("content-type", "application/json")
    return Reply(headers=(kind,), length=len(body), body=_once(body))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _zeros(length: int) -> AsyncIterator[bytes]:
    chunk = bytes(_CHUNK)
    while length > 0:
        yield chunk[:length]
        length -= _CHUNK
