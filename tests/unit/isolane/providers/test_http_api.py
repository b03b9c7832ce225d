"""isolane.providers.http_api: a client of one origin, tagged, pinned, and gone for good when disposed of."""

import base64
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from isolane.providers.http_api import HttpApi, HttpApiConfig
from isolane.results import Code, StepError
from isolane.shapes import ShapeError, build
from tests.recorder import Answer, Recorder
from tests.unit.isolane.providers.grants import (
    SECRET,
    TAG,
    RawServer,
    http_grant,
    read_request,
)
from tests.waiting import wait_for

PROVIDER = HttpApi()


def test_a_request_goes_below_the_base_url_and_carries_the_tag(recorder: Recorder) -> None:
    client = PROVIDER.create(http_grant(f"{recorder.url}/v1", headers={"X-Team": "a"}), TAG)
    assert client.get("/orders", params={"page": 2}).json() == {"ok": True}
    PROVIDER.dispose(client)
    (request,) = recorder.requests
    assert request.path == "/v1/orders?page=2"
    assert request.headers["user-agent"] == f"isolane {TAG}"
    assert request.headers["x-team"] == "a"
    assert "authorization" not in request.headers


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
def test_the_secret_is_sent_as_auth_says(
    recorder: Recorder, config: dict[str, Any], header: str, value: str
) -> None:
    client = PROVIDER.create(http_grant(recorder.url, **config), TAG)
    client.get("/")
    client.close()
    assert recorder.requests[0].headers[header] == value
    assert SECRET not in repr(client)


def test_all_requests_share_one_connection(recorder: Recorder) -> None:
    client = PROVIDER.create(http_grant(recorder.url), TAG)
    for _ in range(5):
        client.get("/")
    assert len(recorder.client_ports) == 1
    client.close()
    wait_for(lambda: not recorder.open_ports, "the end of the connection")


def test_the_host_is_never_looked_up(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = socket.getaddrinfo

    def lookup(host: Any, *rest: Any, **more: Any) -> Any:
        asked.append(host)
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    client = PROVIDER.create(http_grant(f"http://shop.invalid:{recorder.port}"), TAG)
    assert client.get("/").status_code == 200
    client.close()
    assert set(asked) == {"127.0.0.1"}
    assert recorder.requests[0].headers["host"] == f"shop.invalid:{recorder.port}"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://127.0.0.2:{port}/",
        "http://localhost:{port}/",
        "http://127.0.0.1:1/",
        "https://127.0.0.1:{port}/",
        "ftp://127.0.0.1/",
    ],
)
def test_nothing_goes_to_another_origin(recorder: Recorder, elsewhere: str) -> None:
    client = PROVIDER.create(http_grant(recorder.url, auth="bearer"), TAG)
    with pytest.raises(StepError, match="the only origin that this resource reaches") as refused:
        client.get(elsewhere.format(port=recorder.port))
    client.close()
    assert refused.value.code is Code.POLICY_VIOLATION
    assert recorder.requests == []


def test_the_connections_refuse_another_place_and_unix_sockets_by_themselves() -> None:
    import httpcore

    from isolane.providers.pinned import PinnedBackend

    backend = PinnedBackend(host="shop.example", port=443, address="127.0.0.1")
    for host, port in (("other.example", 443), ("shop.example", 5432)):
        with pytest.raises(httpcore.ConnectError, match=r"is not shop\.example:443"):
            backend.connect_tcp(host, port)
    with pytest.raises(httpcore.ConnectError, match="Unix sockets"):
        backend.connect_unix_socket("/run/x")


def test_a_redirect_is_not_followed_and_never_carries_the_secret_away(recorder: Recorder) -> None:
    with Recorder().serving() as thief:
        recorder.otherwise = Answer(status=302, headers={"Location": f"{thief.url}/x"})
        client = PROVIDER.create(http_grant(recorder.url, auth="header", header="X-Api-Key"), TAG)
        assert client.get("/").status_code == 302
        with pytest.raises(StepError, match="the only origin"):
            client.get("/", follow_redirects=True)
        client.close()
        assert thief.requests == []


def test_proxies_of_the_environment_are_ignored(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    client = PROVIDER.create(http_grant(recorder.url), TAG)
    assert client.get("/").status_code == 200
    client.close()


# --- trying again
@pytest.mark.parametrize(("method", "tries"), [("GET", 3), ("PUT", 3), ("POST", 1), ("PATCH", 1)])
def test_a_passing_failure_is_tried_again_if_that_is_safe(
    recorder: Recorder, method: str, tries: int
) -> None:
    recorder.queue = [Answer(status=503), Answer(status=502)]
    client = PROVIDER.create(http_grant(recorder.url, retries=3), TAG)
    response = client.request(method, "/", content=b"x" if method != "GET" else None)
    client.close()
    assert len(recorder.requests) == tries
    assert response.status_code == (200 if tries == 3 else 503)


def test_the_last_answer_stands_when_tries_are_up(recorder: Recorder) -> None:
    recorder.otherwise = Answer(status=504, body=b"late")
    client = PROVIDER.create(http_grant(recorder.url, retries=1), TAG)
    response = client.get("/")
    client.close()
    assert (response.status_code, response.text, len(recorder.requests)) == (504, "late", 2)


@pytest.mark.parametrize("status", [200, 404, 429, 500])
def test_other_answers_are_not_tried_again(recorder: Recorder, status: int) -> None:
    recorder.otherwise = Answer(status=status)
    client = PROVIDER.create(http_grant(recorder.url, retries=5), TAG)
    assert client.get("/").status_code == status
    client.close()
    assert len(recorder.requests) == 1


def test_a_broken_connection_is_tried_again() -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        if len(seen) > 1:
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok")

    with RawServer(serve).serving() as server:
        client = PROVIDER.create(http_grant(server.url, retries=1), TAG)
        assert client.get("/").text == "ok"
        assert len(seen) == 2
        seen.clear()
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/")
        client.close()
    assert len(seen) == 1


def test_retries_stay_within_the_time_of_the_request(recorder: Recorder) -> None:
    recorder.otherwise = Answer(status=503)
    client = PROVIDER.create(http_grant(recorder.url, retries=5, timeout_s=0.5), TAG)
    began = time.monotonic()
    assert client.get("/").status_code == 503
    client.close()
    assert time.monotonic() - began < 0.5
    assert 1 < len(recorder.requests) < 6


# --- time
def test_a_remote_server_that_hangs_is_left_in_time() -> None:
    with RawServer(lambda connection: server.ended.wait(30)).serving() as server:
        client = PROVIDER.create(http_grant(server.url, timeout_s=0.2, retries=5), TAG)
        with pytest.raises(httpx.ReadTimeout):
            client.get("/")
        client.close()


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_remote_server_that_drips_does_not_get_more_time(where: str) -> None:
    """Each byte comes in time, but the whole does not."""

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        begin = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n"
        connection.sendall(begin + (b"X-Slow: " if where == "headers" else b"\r\n"))
        while not server.ended.wait(0.05):
            connection.sendall(b"x")

    with RawServer(serve).serving() as server:
        client = PROVIDER.create(http_grant(server.url, timeout_s=0.5), TAG)
        began = time.monotonic()
        with pytest.raises(httpx.ReadTimeout):
            client.get("/")
        assert time.monotonic() - began < 5
        client.close()


# --- the end
def test_a_disposed_client_raises_and_connects_no_more(recorder: Recorder) -> None:
    client = PROVIDER.create(http_grant(recorder.url), TAG)
    transport = client._transport
    client.get("/")
    PROVIDER.dispose(client)
    PROVIDER.dispose(client)
    with pytest.raises(RuntimeError, match="closed"):
        client.get("/")
    with pytest.raises(httpx.ConnectError, match="closed"):
        transport.handle_request(httpx.Request("GET", recorder.url))
    wait_for(lambda: not recorder.open_ports, "the end of the connection")
    assert len(recorder.requests) == 1


def test_disposal_ends_a_request_that_another_thread_waits_for() -> None:
    """Closing a socket alone would leave it open at the remote server as long as somebody reads from it."""
    gone = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        asked.set()
        if connection.recv(1) == b"":
            gone.set()

    asked = threading.Event()
    raised: list[BaseException] = []
    with RawServer(serve).serving() as server:
        client = PROVIDER.create(http_grant(server.url, timeout_s=60), TAG)

        def ask() -> None:
            try:
                client.get("/")
            except httpx.HTTPError as error:
                raised.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert asked.wait(10)
        PROVIDER.dispose(client)
        assert gone.wait(10)
        thread.join(10)
        assert not thread.is_alive()
    assert len(raised) == 1


def test_a_connection_that_opens_during_disposal_is_ended(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = PROVIDER.create(http_grant(recorder.url), TAG)
    real = socket.create_connection

    def slow(*args: Any, **more: Any) -> socket.socket:
        found: socket.socket = real(*args, **more)
        PROVIDER.dispose(client)
        return found

    monkeypatch.setattr(socket, "create_connection", slow)
    with pytest.raises(httpx.ConnectError, match="closed"):
        client.get("/")
    wait_for(lambda: not recorder.open_ports, "the end of the connection")
    assert recorder.requests == []


# --- a sign of life
@pytest.mark.parametrize("status", [200, 401, 404, 503])
def test_any_answer_is_a_sign_of_life(recorder: Recorder, status: int) -> None:
    recorder.otherwise = Answer(status=status)
    client = PROVIDER.create(http_grant(f"{recorder.url}/v1"), TAG)
    assert PROVIDER.check(client) == {"status": status}
    client.close()
    assert [(r.method, r.path) for r in recorder.requests] == [("HEAD", "/v1/")]


def test_no_answer_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    client = PROVIDER.create(http_grant(url), TAG)
    with pytest.raises(StepError, match="HEAD /: no answer, ConnectError") as failed:
        PROVIDER.check(client)
    client.close()
    assert failed.value.code is Code.TRANSIENT_ERROR


# --- TLS
@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for shop.test, and its key, which nobody knows yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path / "shop.pem"
    path.write_bytes(secret + made.public_bytes(pem))
    return path


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[tuple[RawServer, list[str | None]]]:
    """A server with that certificate, and the names that clients asked for."""
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(name)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as tls:
            while read_request(tls):
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with RawServer(serve).serving() as server:
        yield server, names


def test_tls_is_checked_against_the_name_while_the_address_is_pinned(
    tls_server: tuple[RawServer, list[str | None]],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, names = tls_server
    monkeypatch.setattr(certifi, "where", lambda: str(certificate))
    client = PROVIDER.create(http_grant(f"https://shop.test:{server.port}"), TAG)
    assert [client.get("/").text for _ in range(2)] == ["ok", "ok"]
    client.close()
    assert names == ["shop.test"]
    wrong = PROVIDER.create(http_grant(f"https://other.test:{server.port}"), TAG)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        wrong.get("/")
    wrong.close()


def test_a_certificate_that_nobody_vouches_for_is_refused(
    tls_server: tuple[RawServer, list[str | None]],
) -> None:
    client = PROVIDER.create(http_grant(f"https://shop.test:{tls_server[0].port}"), TAG)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        client.get("/")
    client.close()


def test_an_authority_of_the_definition_replaces_the_public_ones(
    tls_server: tuple[RawServer, list[str | None]], certificate: Path
) -> None:
    url = f"https://shop.test:{tls_server[0].port}"
    ca = certificate.read_text().partition("-----END PRIVATE KEY-----")[2].strip()
    client = PROVIDER.create(http_grant(url, ca=ca), TAG)
    assert client.get("/").text == "ok"
    client.close()


# --- behind a gate
def test_a_brokered_client_speaks_in_clear_and_has_no_secret(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certifi, "where", lambda: pytest.fail("certificates were loaded"))
    url = f"https://shop.test:{recorder.port}"
    asked = http_grant(url, auth="bearer", http2=True)
    client = PROVIDER.create(replace(asked, secrets={}, brokered=True), TAG)
    assert client.base_url == httpx.URL(url)
    assert client.get("/").status_code == 200
    with pytest.raises(StepError, match="the only origin that this resource reaches"):
        client.get(f"http://shop.test:{recorder.port}/")
    client.close()
    (request,) = recorder.requests
    assert request.headers["host"] == f"shop.test:{recorder.port}"
    assert request.headers["user-agent"] == f"isolane {TAG}"
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("brokered", "status", "is_believed"),
    [(True, 502, True), (True, 200, False), (False, 502, False)],
)
def test_only_a_gate_that_has_no_answer_is_believed_to_be_one(
    recorder: Recorder, brokered: bool, status: int, is_believed: bool
) -> None:
    says = {"Proxy-Status": "isolane; error=destination_unavailable"}
    recorder.otherwise = Answer(status=status, headers=says)
    asked = http_grant(f"http://shop.test:{recorder.port}")
    client = PROVIDER.create(replace(asked, brokered=brokered), TAG)
    if is_believed:
        with pytest.raises(httpx.ConnectError):
            client.post("/")
    else:
        assert client.post("/").status_code == status
    client.close()


# --- definitions
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"base_url": "ftp://a"}, "base_url: 'ftp://a' is not a URL such as"),
        ({"base_url": "shop.example"}, "base_url: .* is not a URL such as"),
        ({"base_url": "http://"}, "is not a URL"),
        ({"base_url": "http://[::1"}, "base_url: is not a URL"),
        ({"base_url": "http://a:99999"}, "base_url: is not a URL"),
        ({"base_url": "http://a:0"}, "is not a URL such as"),
        ({"base_url": "http://a/?x=1"}, "has a query"),
        ({"base_url": "http://a/b c"}, "has a space"),
        ({"base_url": "http://a\\@b"}, "base_url: contains a user"),
        ({"base_url": "http://a:080"}, "is not a URL such as"),
        ({"base_url": "http://%61.example"}, "is not a URL such as"),
        ({"base_url": "http://ä.example"}, "is not a URL such as"),
        ({"base_url": "http://a/ü"}, "non-ASCII"),
        ({"base_url": "http://a/..\\\\b"}, "a backslash"),
        ({"auth": "basic"}, "user: missing, auth basic needs it"),
        ({"auth": "header"}, "header: missing"),
        ({"auth": "bearer", "user": "ann"}, "user: only auth basic takes one"),
        ({"auth": "basic", "user": "a:b"}, "user: 'a:b' has a colon"),
        ({"auth": "header", "header": "a b"}, "header: 'a b' is not the name"),
        ({"auth": "header", "header": "Host"}, "header: 'Host' cannot be set"),
        ({"auth": "digest"}, "auth: expected one of none, bearer, basic, header"),
        ({"headers": {"Host": "b"}}, "headers: 'Host' cannot be set here"),
        ({"headers": {"Authorization": "b"}}, "headers: 'Authorization' cannot be set here"),
        ({"headers": {"X": "a\r\nb: c"}}, "headers: the value of 'X'"),
        ({"headers": {"X\n": "a"}}, "is not the name of a header"),
        ({"timeout_s": 0}, "timeout_s: 0.0 is not above 0"),
        ({"timeout_s": float("nan")}, "timeout_s: nan is not above 0"),
        ({"connect_timeout_s": 61}, "connect_timeout_s: 61.0 is not"),
        ({"retries": 6}, "retries: 6 is not between 0 and 5"),
        ({"credentials": "none"}, "credentials: expected one of brokered, inside"),
        ({"ca": "x"}, "ca: contains no certificate in PEM"),
        ({"ca": "x", "base_url": "http://a"}, "ca: needs a base_url with https"),
        ({"http2": True, "base_url": "http://a"}, "http2: needs a base_url with https"),
        ({"proxy": "x"}, "unknown field 'proxy'"),
    ],
)
def test_a_definition_says_what_is_wrong(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        build(HttpApiConfig, {"base_url": "https://shop.example/v1", **config}, "config")


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ShapeError, match="put it into a secret") as refused:
        build(HttpApiConfig, {"base_url": f"https://ann:{SECRET}@a"}, "config")
    assert SECRET not in str(refused.value)


def test_auth_and_secret_belong_together() -> None:
    bearer = HttpApiConfig(base_url="https://a", auth="bearer")
    PROVIDER.check_definition(bearer, frozenset({"token"}))
    with pytest.raises(ValueError, match="auth bearer needs the secret token"):
        PROVIDER.check_definition(bearer, frozenset())
    with pytest.raises(ValueError, match="auth: is none, but there is a secret"):
        PROVIDER.check_definition(HttpApiConfig(base_url="https://a"), frozenset({"token"}))


def test_a_secret_that_no_header_can_carry_is_not_repeated() -> None:
    bad = f"{SECRET}\r\nX-More: 1"
    grant = replace(http_grant("http://a", auth="bearer"), secrets={"token": bad})
    with pytest.raises(ValueError, match="a character that no header can carry") as refused:
        PROVIDER.create(grant, TAG)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(grant)


def test_a_compressed_answer_is_read(recorder: Recorder) -> None:
    recorder.otherwise = Answer(
        body=gzip.compress(b"[1]"),
        headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
    )
    client = PROVIDER.create(http_grant(recorder.url), TAG)
    assert client.get("/").json() == [1]
    client.close()
