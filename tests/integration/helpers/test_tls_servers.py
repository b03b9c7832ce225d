"""The TLS servers of the tests do what the tests of the gate rely on."""

import socket
import ssl
from collections.abc import Iterator

import h2.config
import h2.connection
import h2.events
import httpx
import pytest

from tests.tls_certificates import TestAuthority, temporary_authority
from tests.tls_servers.http2 import Http2Server
from tests.tls_servers.https import HttpsServer
from tests.tls_servers.server import TlsServer

NAME = "api.example.test"


@pytest.fixture(scope="module")
def authority() -> Iterator[TestAuthority]:
    with temporary_authority() as made:
        yield made


@pytest.fixture
def https(authority: TestAuthority) -> Iterator[HttpsServer]:
    with HttpsServer(authority.issue(NAME)).serving() as server:
        yield server


def connect(
    server: TlsServer, authority: TestAuthority, name: str, *protocols: str
) -> ssl.SSLSocket:
    plain = socket.create_connection((server.host, server.port), timeout=10)
    try:
        context = authority.client_context(*protocols)
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


@pytest.fixture
def client(https: HttpsServer, authority: TestAuthority) -> Iterator[httpx.Client]:
    url = f"https://{https.host}:{https.port}"
    with httpx.Client(
        base_url=url, verify=authority.client_context(), headers={"Host": NAME}
    ) as made:
        made.event_hooks = {
            "request": [lambda request: request.extensions.update(sni_hostname=NAME)]
        }
        yield made


def test_an_expired_certificate_is_refused_by_the_client(authority: TestAuthority) -> None:
    with HttpsServer(authority.issue(NAME, expired=True)).serving() as server:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            connect(server, authority, NAME)


def test_an_address_can_be_certified_and_served_by_ipv6(authority: TestAuthority) -> None:
    with HttpsServer(authority.issue("::1"), host="::1").serving() as server:
        with connect(server, authority, "::1") as connection:
            assert connection.version() == "TLSv1.3"


def test_downloads_and_uploads_are_whole_on_one_connection(
    https: HttpsServer, client: httpx.Client
) -> None:
    assert client.get("/bytes/1000000").content == bytes(1_000_000)
    known = client.post("/upload", content=bytes(300_000)).json()
    streamed = client.post("/upload", content=iter([bytes(100_000)] * 3)).json()
    assert known["received"] == 300_000
    assert known == streamed
    assert https.connections == 1


def test_events_come_one_by_one(https: HttpsServer, client: httpx.Client) -> None:
    events = https.endpoints.events
    events.put("first")
    with client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert next(lines) == "data: first"
        events.put("second")
        assert next(line for line in lines if line) == "data: second"
        events.put(None)
        assert not any(lines)


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        (b"GET http://169.254.169.254/ HTTP/1.1", b"HTTP/1.1 200 OK"),
        (b"CONNECT 169.254.169.254:80 HTTP/1.1", b"HTTP/1.1 200 OK"),
        (b"GET //169.254.169.254/ HTTP/1.0", b"HTTP/1.1 200 OK"),
        (b"GET /", b"HTTP/1.1 400 Bad Request"),
        (b"\x05\x01\x00", b"HTTP/1.1 400 Bad Request"),
    ],
)
def test_odd_requests_are_answered_and_the_connection_is_closed(
    https: HttpsServer, authority: TestAuthority, request_line: bytes, answer: bytes
) -> None:
    with connect(https, authority, NAME) as connection:
        connection.sendall(request_line + b"\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert received.startswith(answer)
    targets = [seen.target.encode() for seen in https.endpoints.requests]
    assert targets == (request_line.split()[1:2] if b"200" in answer else [])


def test_the_block_ends_open_connections(authority: TestAuthority) -> None:
    with HttpsServer(authority.issue(NAME)).serving() as server:
        connection = connect(server, authority, NAME)
    with connection:
        with pytest.raises(OSError):
            connection.send(b"GET / HTTP/1.1\r\n\r\n")
            raise OSError if connection.recv(10) == b"" else AssertionError("it answers")


def test_http2_answers_with_flow_control(authority: TestAuthority) -> None:
    size = 200_000  # more than the first window
    with Http2Server(authority.issue(NAME)).serving() as server:
        with connect(server, authority, NAME, "h2") as connection:
            assert connection.selected_alpn_protocol() == "h2"
            assert fetched(connection, f"/bytes/{size}") == bytes(size)
        (seen,) = server.endpoints.requests
    assert (seen.version, seen.protocol, seen.header(":authority")) == ("HTTP/2", "h2", NAME)


def fetched(connection: ssl.SSLSocket, path: str) -> bytes:
    state = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=True))
    state.initiate_connection()
    headers = {":method": "GET", ":path": path, ":scheme": "https", ":authority": NAME}
    state.send_headers(1, list(headers.items()), end_stream=True)
    body = b""
    while True:
        connection.sendall(state.data_to_send())
        for event in state.receive_data(connection.recv(65536)):
            if isinstance(event, h2.events.DataReceived):
                body += event.data
                state.acknowledge_received_data(event.flow_controlled_length, 1)
            elif isinstance(event, h2.events.StreamEnded):
                return body
