"""An HTTP server on loopback that remembers what it was asked and answers as it is told.

Timing: as long as its block. Model: a thread per connection. Guarantee: a request is recorded before it is answered.
Failure: bubble; an answer that raises ends its connection.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Request:
    """A received request; header names in lower case. The client's port distinguishes connections."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    client_port: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer, sent once `after` is set if there is one; `chunks` are sent one by one instead of `body`."""

    status: int = 200
    body: bytes = b'{"ok": true}'
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    chunks: tuple[bytes, ...] = ()
    after: threading.Event | None = None


Answering = Answer | Callable[[Request], Answer]


class Recorder:
    """The requests so far, and the next answers: the `queue` first, then by path, then `otherwise`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.queue: list[Answering] = []
        self.by_path: dict[str, Answering] = {}
        self.otherwise: Answering = Answer()
        self.connections: dict[int, socket.socket] = {}  # open ones, by the client's port
        self.lock = threading.Lock()
        self._server = _Server(self)

    @property
    def host(self) -> str:
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def client_ports(self) -> set[int]:
        """One for each connection that ever asked something."""
        with self.lock:
            return {request.client_port for request in self.requests}

    @property
    def open_ports(self) -> set[int]:
        """One for each connection that is open now."""
        with self.lock:
            return set(self.connections)

    def asked(self, text: object) -> list[Request]:
        """The requests with this text in their path or a header."""
        with self.lock:
            return [
                request
                for request in self.requests
                if any(str(text) in value for value in (request.path, *request.headers.values()))
            ]

    def record(self, request: Request) -> Answer:
        """Remember it and say what to answer."""
        with self.lock:
            self.requests.append(request)
            path = request.path.partition("?")[0]
            answering = self.queue.pop(0) if self.queue else self.by_path.get(path, self.otherwise)
        return answering(request) if callable(answering) else answering

    @contextlib.contextmanager
    def serving(self) -> Iterator["Recorder"]:
        """Answer until the block ends; connections that are still open are cut then."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
            with self.lock:
                for connection in self.connections.values():
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that keeps its connection must not hold up the end of a test

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        recorder = self.server.recorder
        with recorder.lock:
            recorder.connections[self.client_address[1]] = self.connection

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client may leave as it likes
            super().handle()

    def finish(self) -> None:
        recorder = self.server.recorder
        with recorder.lock:
            del recorder.connections[self.client_address[1]]
        with contextlib.suppress(ConnectionError):
            super().finish()

    def log_message(self, *_: Any) -> None:
        """Log nothing: tests read `requests`."""

    def respond(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
            client_port=self.client_address[1],
        )
        answer = self.server.recorder.record(request)
        if answer.after:
            answer.after.wait(30)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.chunks:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if not answer.chunks:
            self.wfile.write(answer.body)
            return
        for chunk in (*answer.chunks, b""):
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.flush()


for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
    setattr(_Handler, f"do_{method}", _Handler.respond)
