"""resources.gate.brokers.http: whatever a run sends, the server gets the secret, once, and no login of the run."""

import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolane.gate.frames import CHUNK, FrameKind, GateFrame
from isolane.protocol import Grant
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import http_login
from resources.gate.brokers.share import Share
from resources.gate.plan import Route
from resources.gate.record import ConnectionReason
from tests.integration.resources.gate.remote import SECONDS, Runtime, a_route, a_runtime
from tests.waiting import wait_for

HOST = "api.example.test"
SECRET = "s3cret-token-value"
FORGED = "forged-by-the-run"
ANSWER_SECONDS = 0.01  # then the run ends its direction, whether or not there was an answer
PAUSE = 0.001

LINES = [
    "GET / HTTP/1.1", "POST /orders HTTP/1.1", "HEAD / HTTP/1.1", "PUT /a?b=c HTTP/1.0", "OPTIONS * HTTP/1.1",
    "TRACE / HTTP/1.1", "CONNECT other.example:443 HTTP/1.1", "GET http://other.example/ HTTP/1.1", "GET //x HTTP/1.1",
    "GET /a b HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/9.9", "GET /\t HTTP/1.1", " GET / HTTP/1.1", "",
]  # fmt: skip
HEADERS = [
    "Host: PLACE", "Host: PLACE", "Host: other.example", "host:PLACE", "Host: PLACE, other.example",
    f"Authorization: {FORGED}", f"authorization:{FORGED}", f"Authorization : {FORGED}", f"AUTHORIZATION: {FORGED}",
    f"X: y\rAuthorization: {FORGED}", f"X: y\nAuthorization: {FORGED}", f" Authorization: {FORGED}",
    f"X: y\r\n\tAuthorization: {FORGED}", "X\0: y", "Connection: close, authorization", "Connection: keep-alive, host",
    "Connection: content-length", "Content-Length: 5", "Content-Length: 5", "Content-Length: +5",
    "Content-Length: 5, 5",     "Content-Length: 6", "Content-Length: 0x5", "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: \vchunked", "Expect: 100-continue", "Upgrade: websocket", "Trailer: Authorization",
    "X: " + "y" * 9000,
]  # fmt: skip
BODIES = [
    "hello", "hello", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "5;x=y\r\nhello\r\n0\r\n\r\n",
    f"0\r\nAuthorization: {FORGED}\r\n\r\n", "05\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "-1\r\n",
    "FFFFFFFFFFFFFFFFF\r\n", "\r\n", "\0", f"GET /smuggled HTTP/1.1\r\nHost: PLACE\r\nAuthorization: {FORGED}\r\n\r\n",
]  # fmt: skip


class Server(ThreadingHTTPServer):
    """Keeps the logins and hosts of all requests, as Python's own parser finds them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heads: list[tuple[list[str], list[str]]] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def parse_request(self) -> bool:
        """Take any method."""
        if not super().parse_request():
            return False
        setattr(self, f"do_{self.command}", self._answer)
        return True

    def _answer(self) -> None:
        get = self.headers.get_all
        self.server.heads.append((get("Authorization") or [], get("Host") or []))
        if self.headers.get("Transfer-Encoding"):
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        serving = threading.Thread(target=found.serve_forever)
        serving.start()
        yield found
        found.shutdown()
        serving.join()


FRAMED = [
    ("GET", "", ""),
    ("POST", "Content-Length: 5", "hello"),
    ("PUT", "Transfer-Encoding: chunked", BODIES[3]),
]
framed = st.builds(
    lambda framing, headers: "\r\n".join(
        [
            f"{framing[0]} /orders HTTP/1.1",
            HEADERS[0],
            *filter(None, [framing[1]]),
            *headers,
            "",
            framing[2],
        ]
    ),
    st.sampled_from(FRAMED),
    st.lists(st.sampled_from(HEADERS[2:]), max_size=1),
)
odd = st.builds(
    lambda line, headers, newline, bodies: newline.join([line, *headers, "", ""]) + "".join(bodies),
    st.sampled_from(LINES[:2]) | st.sampled_from(LINES),
    st.lists(st.sampled_from(HEADERS), max_size=4).map(lambda some: [HEADERS[0], *some])
    | st.lists(st.sampled_from(HEADERS), max_size=4),
    st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r"]),
    st.lists(st.sampled_from(BODIES), max_size=2),
)


def test_no_request_passes_without_the_secret_or_with_one_of_the_run(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    grant = Grant(
        name="shop",
        type="http_api",
        definition="shop",
        scope="execution",
        config={"base_url": f"http://{HOST}:{server.server_port}", "auth": "bearer"},
        secrets={"token": SECRET},
        address="127.0.0.1",
    )
    broker = HttpBroker(http_login(grant), Share())
    route = a_route(server.server_port, host=HOST, broker=broker)

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(
        requests=st.lists(framed | odd, min_size=1, max_size=3),
        cut=st.integers(min_value=1, max_value=400),
        noise=st.binary(max_size=12),
    )
    def check(requests: list[str], cut: int, noise: bytes) -> None:
        text = "".join(requests).replace("PLACE", f"{HOST}:{server.server_port}")
        send(route, text.encode("latin-1") + noise, cut)

    with caplog.at_level(logging.ERROR):
        check()
    assert caplog.messages == []
    assert len(server.heads) > 50  # of requests that were in order
    expected = [f"Bearer {SECRET}"], [f"{HOST}:{server.server_port}"]
    assert [head for head in server.heads if head != expected] == []


def send(route: Route, data: bytes, cut: int) -> None:
    """Send these bytes in two pieces; nothing but the connection may end of it."""
    with a_runtime(route) as runtime:
        runtime.dial(1)
        for piece in (data[:cut], data[cut:]):
            for start in range(0, len(piece), CHUNK):
                runtime.send(GateFrame(FrameKind.DATA, 1, 0, piece[start : start + CHUNK]))
        patience = time.monotonic() + ANSWER_SECONDS
        wait_for(lambda: time.monotonic() > patience or has_ended(runtime), "it", pause=PAUSE)
        runtime.send(GateFrame(FrameKind.END, 1))
        wait_for(lambda: runtime.records, "its end", SECONDS, pause=PAUSE)
        assert SECRET.encode() not in runtime.bytes_of(1)
        assert not runtime.gate._dialled
        (record,) = runtime.records
        assert record.reason is not ConnectionReason.RUN_ENDED
        assert record.sent == len(data)
        assert runtime.faults == []


def has_ended(runtime: Runtime) -> bool:
    ends = (FrameKind.END, FrameKind.RESET)
    return any(frame.kind in ends and frame.connection == 1 for frame in runtime.receive())
