"""A web server with limits of a test's choice, in a thread, before a small application; and its callers."""

import asyncio
import contextvars
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpResponse

from foundation.known_caller import STATE
from orchestrator.web.limits import WebLimits
from orchestrator.web.serve import WebServer, listen
from tests.waiting import wait_for

ADDRESS = "127.0.0.1"
SWEEP_SECONDS = 0.05
BIG = 16 * 1024 * 1024  # more than the kernel keeps for a caller that does not read
_seen: contextvars.ContextVar[int] = contextvars.ContextVar("seen", default=0)


class Application:
    """Answers with the size of its input; at /wait it waits, at /big it answers much, at /stream it does not end."""

    def __init__(self) -> None:
        self.called = 0
        self.returned = 0
        self.go_on = threading.Event()
        self.leaked = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.called += 1
        self.leaked |= bool(_seen.get())
        _seen.set(1)
        body = (await receive())["body"]
        if scope["path"] == "/wait":
            await self.wait()
        kind = b"text/event-stream" if scope["path"] == "/stream" else b"text/plain"
        if (b"authorization", b"valid") in scope["headers"]:
            scope["state"][STATE] = "tenant:1"
        said = b"x" * BIG if scope["path"] == "/big" else b"%d bytes" % len(body)
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}
        )
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
            await receive()  # until the caller leaves, or was refused
            return
        await send({"type": "http.response.body", "body": said})
        self.returned += 1

    async def wait(self) -> None:
        while not self.go_on.is_set():
            await asyncio.sleep(0.01)


class Web:
    """The server, from a caller's side."""

    def __init__(self, server: WebServer, application: Application, port: int) -> None:
        self.server = server
        self.application = application
        self.port = port

    def connect(self, sent: bytes = b"") -> socket.socket:
        """A connection on which so much was sent."""
        connection = socket.create_connection((ADDRESS, self.port), timeout=5)
        try:
            connection.sendall(sent)
        except OSError:
            connection.close()
            raise
        return connection

    def ask(self, sent: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to one request; the server closes, or was asked to."""
        with self.connect(sent) as connection:
            return parse(read_all(connection))

    def stop(self) -> None:
        self.server.should_exit = True


def refusal(scope: Any) -> HttpResponse | None:
    """The application's refusal of callers that have to wait."""
    return HttpResponse("wait", status=429) if scope["path"] == "/refused" else None


@contextmanager
def serving(**limits: float) -> Iterator[Web]:
    """Serve until the block ends."""
    # Everything that would end by its time is far away, unless a test is about it.
    long = {
        "header_seconds": 60,
        "body_seconds": 60,
        "body_first_seconds": 60,
        "stalled_seconds": 60,
        "closing_seconds": 60,
    }
    few = {"connections": 50, "accepted": 50, "queued": 20, "streams": 5, "at_work": 20}
    application = Application()
    given: dict[str, Any] = {**long, **few, "body_bytes": 100_000, **limits}
    server = WebServer(
        application,
        WebLimits(**given),
        session_cookie="sessionid",
        refusal=refusal,
        sweep_seconds=SWEEP_SECONDS,
    )
    listening = listen(ADDRESS, 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        wait_for(lambda: server.started, "the server to start")
        yield Web(server, application, listening.getsockname()[1])
    finally:
        application.go_on.set()
        server.should_exit = True
        thread.join(10)
        listening.close()
    assert not thread.is_alive()


def request(path: str = "/", *headers: str, body: bytes = b"", method: str = "POST") -> bytes:
    """A request as it is sent."""
    lines = (f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def get(path: str = "/", *headers: str) -> bytes:
    """A whole request, after which the connection is not used any more."""
    return request(path, "Connection: close", *headers, method="GET")


def chunked(size: int, chunk: int = 10_000) -> bytes:
    """A body in chunks."""
    one = b"%x\r\n%s\r\n" % (chunk, b"x" * chunk)
    return one * (size // chunk) + b"0\r\n\r\n"


def read_all(connection: socket.socket) -> bytes:
    """Until the server closes."""
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received


def parse(received: bytes) -> tuple[int, bytes]:
    """Status and body; 0 if there is no answer."""
    head, _, body = received.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def problem(answer: tuple[int, bytes], status: int) -> dict[str, Any]:
    """The problem that the answer must be."""
    assert answer[0] == status, answer
    found: dict[str, Any] = json.loads(answer[1])
    assert found["status"] == status
    assert found["type"] == f"urn:isolane:problem:{found['code']}"
    return found


def is_closed(connection: socket.socket) -> bool:
    """Return True if the server has closed; read and discard what it sent before."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True
