"""isolane.providers.database and the worker's own connection: whose certificates they trust."""

import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from isolane.protocol import Grant
from isolane.providers.database import Database
from resources.issuers.base import IssueError
from resources.issuers.remote_postgres import remote_connection
from tests.unit.isolane.providers.grants import SECRET, TAG, RawServer

SSL_REQUEST_BYTES = 8
Connect = Callable[[str, int, str], object]


def as_runtime(host: str, port: int, sslmode: str) -> None:
    """Connect as a step's handle does."""
    config = {"host": host, "port": port, "dbname": "shop", "user": "ada", "sslmode": sslmode}
    grant = Grant(
        name="billing",
        type="database",
        definition="billing-db",
        scope="execution",
        config=config,
        secrets={"password": SECRET},
        address="127.0.0.1",
    )
    Database().create(grant, TAG)


def as_worker(host: str, port: int, sslmode: str) -> None:
    """Connect as an issuer does."""
    login = {
        "host": host, "port": port, "dbname": "shop", "user": "ada", "sslmode": sslmode,
        "password": SECRET, "address": "127.0.0.1",
    }  # fmt: skip
    with remote_connection(login):
        pass


@pytest.fixture(params=[as_runtime, as_worker])
def connect(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Connect:
    """Either way, with a home in which there is nothing."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    chosen: Connect = request.param
    return chosen


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for db.test, and its key, which nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "db.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("db.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path / "db.pem"
    path.write_bytes(secret + made.public_bytes(pem))
    return path


@pytest.fixture
def server(certificate: Path) -> Iterator[tuple[RawServer, list[bytes]]]:
    """Speaks TLS as PostgreSQL does and then hangs up; with what it was told under TLS."""
    told: list[bytes] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        connection.recv(SSL_REQUEST_BYTES, socket.MSG_WAITALL)
        connection.sendall(b"S")
        with context.wrap_socket(connection, server_side=True) as tls:
            if said := tls.recv(65_536):
                told.append(said)

    with RawServer(serve).serving() as server:
        yield server, told


@pytest.mark.parametrize("sslmode", ["verify-ca", "verify-full"])
def test_a_server_that_nobody_vouches_for_is_told_nothing(
    connect: Connect, server: tuple[RawServer, list[bytes]], sslmode: str
) -> None:
    with pytest.raises((psycopg.OperationalError, IssueError), match="certificate verify failed"):
        connect("db.test", server[0].port, sslmode)
    assert server[1] == []


@pytest.mark.parametrize(
    ("host", "sslmode", "is_trusted"),
    [
        ("db.test", "verify-full", True),
        ("other.test", "verify-full", False),
        ("other.test", "verify-ca", True),
    ],
)
def test_a_server_that_a_known_authority_vouches_for_is_entered_by_its_name(
    connect: Connect,
    server: tuple[RawServer, list[bytes]],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    sslmode: str,
    is_trusted: bool,
) -> None:
    monkeypatch.setattr(certifi, "where", lambda: str(certificate))
    with pytest.raises((psycopg.OperationalError, IssueError)) as caught:
        connect(host, server[0].port, sslmode)
    assert ("does not match host name" in str(caught.value)) is not is_trusted
    assert [b"ada" in said for said in server[1]] == [True] * is_trusted
