"""resources.gate.brokers.http: a run asks in clear, the remote server sees TLS and the secret."""

import asyncio
import base64
import contextlib
import hashlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest

from isolane.protocol import Grant
from isolane.providers.http_api import HttpApi
from resources.gate.brokers import http
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import HttpLogin, http_login
from resources.gate.brokers.share import Share
from resources.gate.record import ConnectionEnded, ConnectionReason
from tests.integration.resources.gate.brokers.broker_host import BrokerHost
from tests.tls_certificates import TestAuthority
from tests.tls_servers.http2 import Http2Server
from tests.tls_servers.https import HttpsServer
from tests.tls_servers.server import TlsServer

HOST = "api.example.test"
SECRET = "s3cret-token-value"
TAG = "exec_1/2/acme"
MANY = 2_000_000  # bytes, twice what may be kept
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Open = Callable[..., contextlib.AbstractContextManager["Opened"]]


class Opened:
    """A broker in front of a server, and a run's client of it."""

    def __init__(self, host: BrokerHost, port: int, grant: Grant) -> None:
        self.host = host
        self.port = port
        self.client = HttpApi().create(replace(grant, brokered=True, secrets={}), TAG)

    def raw(self, data: bytes, *, ends: bool = False) -> bytes:
        """Send these bytes as a run might; return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                if ends:
                    sock.shutdown(socket.SHUT_WR)
            received = b""
            with contextlib.suppress(ConnectionError):
                while part := sock.recv(65_536):
                    received += part
        assert SECRET.encode() not in received
        return received

    def asked(self, head: str, body: bytes = b"", *, ends: bool = False) -> bytes:
        """Send a request with the right name of the server."""
        lines = head.replace("HOST", f"{HOST}:{self.port}").replace("\n", "\r\n")
        return self.raw(f"{lines}\r\n\r\n".encode() + body, ends=ends)

    def end(self) -> ConnectionEnded:
        """Return the reason why a connection could not go on."""
        ended = self.host.ends.get(timeout=10)
        assert isinstance(ended, ConnectionEnded)
        assert SECRET not in str(ended)
        return ended


class OddServer(TlsServer):
    """Does with a connection what it is told."""

    protocols = ("http/1.1",)

    def __init__(self, authority: TestAuthority, serve: Serve) -> None:
        super().__init__(authority.issue(HOST))
        self._told = serve

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._told(reader, writer)


@pytest.fixture
def authority(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path)


@pytest.fixture
def https(authority: TestAuthority) -> Iterator[HttpsServer]:
    with HttpsServer(authority.issue(HOST)).serving() as server:
        yield server


@pytest.fixture
def http2(authority: TestAuthority) -> Iterator[Http2Server]:
    with Http2Server(authority.issue(HOST)).serving() as server:
        yield server


@pytest.fixture(params=["https", "http2"])
def either(request: pytest.FixtureRequest) -> HttpsServer | Http2Server:
    """A server of each protocol."""
    found: HttpsServer | Http2Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def opened(authority: TestAuthority) -> Open:
    @contextlib.contextmanager
    def open_broker(remote_port: int, **config: Any) -> Iterator[Opened]:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = {"auth": "bearer", "ca": authority.pem, "http2": True, **config}
        grant = Grant(
            name="shop",
            type="http_api",
            definition="shop-api",
            scope="execution",
            config={"base_url": f"https://{HOST}:{port}", **config},
            secrets={"token": SECRET} if config["auth"] != "none" else {},
            address="127.0.0.1",
        )
        with BrokerHost(
            HttpBroker(http_login(grant), Share()), remote_port, listener
        ).serving() as host:
            found = Opened(host, port, grant)
            try:
                yield found
            finally:
                found.client.close()

    return open_broker


async def head_of(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


# --- the login
@pytest.mark.parametrize(
    ("config", "header", "value"),
    [
        ({"auth": "bearer"}, "authorization", f"Bearer {SECRET}"),
        (
            {"auth": "basic", "user": "ann"},
            "authorization",
            "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode(),
        ),
        ({"auth": "header", "header": "X-Api-Key"}, "x-api-key", SECRET),
    ],
)
def test_the_secret_replaces_the_header_of_the_run(
    either: HttpsServer | Http2Server, opened: Open, config: dict[str, Any], header: str, value: str
) -> None:
    with opened(either.port, **config) as broker:
        own = {header.upper(): "of the run", "X-Own": "a"}
        assert broker.client.post("/orders?page=2", content=b"hi", headers=own).status_code == 200
    (request,) = either.endpoints.requests
    assert (request.method, request.target, request.body_bytes) == ("POST", "/orders?page=2", 2)
    assert [v for name, v in request.headers if name == header] == [value]
    assert request.header("x-own") == "a"
    assert request.header("user-agent") == f"isolane {TAG}"
    assert either.server_names == [HOST]


def test_an_api_without_auth_gets_tls_alone(https: HttpsServer, opened: Open) -> None:
    with opened(https.port, auth="none") as broker:
        assert broker.client.get("/").json()["authorization"] is None


class BothServer(HttpsServer):
    """Would rather speak HTTP/2, of which it knows the name."""

    protocols = ("h2", "http/1.1")


def test_http_2_is_used_only_where_the_definition_says_so(
    authority: TestAuthority, opened: Open
) -> None:
    with BothServer(authority.issue(HOST)).serving() as both:
        with opened(both.port, http2=False) as broker:
            assert broker.client.get("/").json()["protocol"] == "http/1.1"


def test_http_2_is_used_where_the_server_has_it(http2: Http2Server, opened: Open) -> None:
    with opened(http2.port) as broker:
        told = broker.client.get("/").json()
        assert (told["version"], told["protocol"]) == ("HTTP/2", "h2")
        assert broker.client.get("/").http_version == "HTTP/1.1"
        pairs = dict(told["headers"])
        assert pairs[":authority"] == f"{HOST}:{broker.port}"


def test_a_server_without_tls_gets_the_secret_too() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head_of(reader))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    seen: list[bytes] = []
    ended = threading.Event()
    with plain_server(serve, ended) as port:
        listener = socket.create_server(("127.0.0.1", 0))
        login = HttpLogin(scheme="http", host=HOST, port=80, header="X-Key", value=SECRET)
        with BrokerHost(HttpBroker(login, Share()), port, listener).serving():
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            assert httpx.get(url, headers={"Host": HOST}).status_code == 204
    assert f"\r\nX-Key: {SECRET}\r\n".encode() in seen[0]
    assert f"\r\nHost: {HOST}\r\n".encode() in seen[0]


@contextlib.contextmanager
def plain_server(serve: Serve, ended: threading.Event) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    port: list[int] = []
    started, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        started.set()
        await stop.wait()
        server.close()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert started.wait(10)
    try:
        yield port[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        ended.set()


# --- bodies
def test_large_bodies_go_both_ways_in_bounded_memory(
    either: HttpsServer | Http2Server, opened: Open
) -> None:
    body = bytes(range(250)) * (MANY // 250)

    def pieces() -> Iterator[bytes]:
        for at in range(0, MANY, 100_000):
            yield body[at : at + 100_000]

    expected = {"received": MANY, "sha256": hashlib.sha256(body).hexdigest()}
    with opened(either.port) as broker:
        assert broker.client.post("/upload", content=body).json() == expected
        assert broker.client.post("/upload", content=pieces()).json() == expected
        answer = broker.client.get(f"/bytes/{MANY}")
        assert len(answer.content) == MANY
        assert answer.headers["content-length"] == str(MANY)
        assert broker.host.most_kept < 1_000_000
        assert broker.host.connects == 1


def test_an_event_arrives_before_the_next_one_is_sent(
    either: HttpsServer | Http2Server, opened: Open
) -> None:
    with opened(either.port) as broker:
        with broker.client.stream("GET", "/events") as answer:
            either.endpoints.events.put("one")
            lines = answer.iter_lines()
            assert next(lines) == "data: one"
            either.endpoints.events.put("two")
            either.endpoints.events.put(None)
            assert [line for line in lines if line] == ["data: two"]
        assert answer.headers["transfer-encoding"] == "chunked"


def test_two_requests_share_one_remote_connection(
    either: HttpsServer | Http2Server, opened: Open
) -> None:
    with opened(either.port) as broker:
        assert broker.client.post("/", content=b"x").status_code == 200
        assert broker.client.get("/").status_code == 200
    assert (either.connections, len(either.endpoints.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("method", "status", "length"), [("HEAD", 200, "9"), ("GET", 204, None), ("GET", 304, "9")]
)
def test_an_answer_without_a_body_is_whole(
    authority: TestAuthority, opened: Open, method: str, status: int, length: str | None
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framing = f"Content-Length: {length}\r\n" if length else ""
        while await head_of(reader):
            writer.write(f"HTTP/1.1 {status} Fine\r\nX-Own: a\r\n{framing}\r\n".encode())

    with OddServer(authority, serve).serving() as server, opened(server.port) as broker:
        for _ in range(2):
            answer = broker.client.request(method, "/")
            assert (answer.status_code, answer.reason_phrase, answer.content) == (
                status,
                "Fine",
                b"",
            )
            assert (answer.headers["x-own"], answer.headers.get("content-length")) == ("a", length)
    assert server.connections == 1


def test_requests_that_come_at_once_are_answered_in_order(https: HttpsServer, opened: Open) -> None:
    with opened(https.port) as broker:
        request = f"GET /bytes/3 HTTP/1.1\r\nHost: {HOST}:{broker.port}\r\n\r\n"
        last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        received = broker.raw((request * 2 + last).encode())
    assert received.count(b"HTTP/1.1 200 OK") == 3


def test_a_server_that_ends_its_connection_between_two_requests_gets_another(
    authority: TestAuthority, opened: Open
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    with OddServer(authority, serve).serving() as server, opened(server.port) as broker:
        assert [broker.client.post("/").text for _ in range(2)] == ["ok", "ok"]
    assert server.connections == 2


def test_a_run_that_waits_before_its_body_is_told_to_go_on(
    https: HttpsServer, opened: Open
) -> None:
    with opened(https.port) as broker:
        with socket.create_connection(("127.0.0.1", broker.port)) as sock:
            head = f"POST / HTTP/1.1\r\nHost: {HOST}:{broker.port}\r\nConnection: close\r\n"
            sock.sendall(f"{head}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n".encode())
            assert sock.recv(1000).startswith(b"HTTP/1.1 100 ")
            sock.sendall(b"hi")
            assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    assert https.endpoints.requests[0].header("expect") is None


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ],
)
def test_an_answer_that_breaks_off_is_not_a_short_one(
    authority: TestAuthority, opened: Open, answer: bytes
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)
        await writer.drain()

    with OddServer(authority, serve).serving() as server, opened(server.port) as broker:
        with pytest.raises(httpx.RemoteProtocolError):
            broker.client.get("/")
        assert broker.end().reason is ConnectionReason.SERVER_RESET


def test_a_run_that_leaves_ends_the_remote_connection(
    authority: TestAuthority, opened: Open
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        asked.set()
        await reader.read()
        gone.set()

    asked, gone = threading.Event(), threading.Event()
    with OddServer(authority, serve).serving() as server, opened(server.port) as broker:
        with socket.create_connection(("127.0.0.1", broker.port)) as sock:
            sock.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{broker.port}\r\n\r\n".encode())
            assert asked.wait(10)
        assert gone.wait(10)
        assert broker.end().reason is ConnectionReason.RESET


# --- refusals
@pytest.mark.parametrize(
    ("head", "status", "said"),
    [
        ("CONNECT other.test:443 HTTP/1.1\nHost: HOST", 405, b"CONNECT is not allowed"),
        ("TRACE / HTTP/1.1\nHost: HOST", 405, b"TRACE is not allowed"),
        ("GET / HTTP/1.1\nHost: other.test", 421, b"reaches api.example.test:"),
        ("GET http://other.test/ HTTP/1.1\nHost: HOST", 400, b"a path that begins with a slash"),
        ("GET / HTTP/1.0", 400, b"the Host header is missing"),
        ("GET / HTTP/1.1", 400, b"not in order"),
        ("garbage", 400, b"not in order"),
        ("GET / HTTP/1.1\nHost: HOST\nX: " + "x" * 1_000_000, 431, b"not in order"),
        ("GET / HTTP/1.1\nHost: HOST\nTransfer-Encoding: gzip", 501, b"not in order"),
        ("GET / HTTP/1.1\nHost: HOST\nContent-Length: 1\nContent-Length: 2", 400, b"not in order"),
    ],
)
def test_what_is_not_for_this_origin_is_refused(
    https: HttpsServer, opened: Open, head: str, status: int, said: bytes
) -> None:
    with opened(https.port) as broker:
        received = broker.asked(head)
        assert received.startswith(f"HTTP/1.1 {status} ".encode())
        assert said in received
        is_malformed = b"not in order" in said
        expected = ConnectionReason.PROTOCOL if is_malformed else ConnectionReason.NOT_ALLOWED
        assert broker.end().reason is expected
    assert https.connections == 0


@pytest.mark.parametrize("half", ["GET / HT", "POST / HTTP/1.1\nHost: HOST\nContent-Length: 9"])
def test_half_a_request_is_refused(https: HttpsServer, opened: Open, half: str) -> None:
    with opened(https.port) as broker:
        assert broker.asked(half, b"half", ends=True).startswith(b"HTTP/1.1 400 ")
        assert broker.end().reason is ConnectionReason.PROTOCOL
    assert https.endpoints.requests == []


def test_the_certificate_must_be_of_the_host(authority: TestAuthority, opened: Open) -> None:
    with HttpsServer(authority.issue("other.test")).serving() as server:
        with opened(server.port) as broker:
            with pytest.raises(httpx.ConnectError, match="is not trusted: Hostname mismatch"):
                broker.client.get("/")
            assert broker.end().reason is ConnectionReason.CERTIFICATE
    assert server.endpoints.requests == []


@pytest.mark.parametrize("case", ["the public authorities", "another authority", "expired"])
def test_the_certificate_must_be_of_a_trusted_authority(
    authority: TestAuthority, opened: Open, tmp_path: Path, case: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca = {"the public authorities": "", "another authority": TestAuthority(other).pem}
    with HttpsServer(authority.issue(HOST, expired=case == "expired")).serving() as server:
        with opened(server.port, ca=ca.get(case, authority.pem)) as broker:
            with pytest.raises(httpx.ConnectError) as refused:
                broker.client.get("/")
            told = str(refused.value)
            assert told.startswith(f"the certificate of {HOST}:{broker.port} is not trusted: ")
            assert "set ca in the definition" in told or case == "expired"
            assert broker.end().reason is ConnectionReason.CERTIFICATE


def test_a_server_without_tls_is_told(opened: Open) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    with plain_server(serve, threading.Event()) as port, opened(port) as broker:
        told = broker.asked("GET / HTTP/1.1\nHost: HOST")
        assert b"use http:// in base_url, or correct the port" in told
        assert broker.end().reason is ConnectionReason.PROTOCOL


def test_public_authorities_are_trusted_without_ca(
    https: HttpsServer, opened: Open, authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    http._context.cache_clear()
    monkeypatch.setattr(certifi, "where", lambda: str(authority.file))
    with opened(https.port, ca="") as broker:
        assert broker.client.get("/").status_code == 200
    http._context.cache_clear()


def test_a_server_that_cannot_be_reached_is_named(opened: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with opened(port) as broker:
        place = f"{HOST}:{broker.port} cannot be reached: "
        with pytest.raises(httpx.ConnectError, match=place):
            broker.client.post("/", content=bytes(MANY))
        assert broker.end().reason is ConnectionReason.UNREACHABLE


def test_a_request_for_headers_alone_is_told_the_reason_too(opened: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with opened(port) as broker:
        with pytest.raises(httpx.ConnectError, match="cannot be reached: Connection refused"):
            broker.client.head("/")
        assert broker.end().reason is ConnectionReason.UNREACHABLE


def test_a_refused_address_is_explained_to_operators_only(https: HttpsServer, opened: Open) -> None:
    with opened(https.port) as broker:
        reason = ConnectionReason.ADDRESS_REFUSED
        broker.host.refusal = ConnectionEnded(reason, "10.0.0.5 is the platform's own")
        with pytest.raises(httpx.ConnectError) as refused:
            broker.client.get("/")
        not_allowed = "may not be connected to: its address is not allowed"
        assert str(refused.value) == f"{HOST}:{broker.port} {not_allowed}"
        ended = broker.end()
        assert (ended.reason, str(ended)) == (reason, "10.0.0.5 is the platform's own")
    assert https.connections == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", ConnectionReason.SERVER_RESET),
        (f"HTTP/1.1 200 OK\r\nbad header {SECRET}\r\n\r\n".encode(), ConnectionReason.PROTOCOL),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", ConnectionReason.PROTOCOL),
    ],
)
def test_a_server_without_an_answer_is_a_bad_gateway(
    authority: TestAuthority, opened: Open, answer: bytes, reason: ConnectionReason
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)
        if answer:
            await reader.read()

    with OddServer(authority, serve).serving() as server, opened(server.port) as broker:
        with pytest.raises(httpx.RemoteProtocolError) as refused:
            broker.client.get("/")
        assert f"{HOST}:{broker.port} gave no answer: " in str(refused.value)
        assert SECRET not in str(refused.value)
        assert broker.end().reason is reason
