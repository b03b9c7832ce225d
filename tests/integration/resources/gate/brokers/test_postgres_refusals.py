"""resources.gate.brokers.postgres: connections that cannot go on, and what the client is told."""

import asyncio
import socket
import ssl
from typing import Any

import psycopg
import pytest

from resources.gate.brokers.postgres import PostgresBroker
from resources.gate.brokers.postgres_authentication import certificate_hash
from resources.gate.brokers.postgres_messages import message
from resources.gate.brokers.share import Share
from resources.gate.record import ConnectionEnded, ConnectionReason
from tests.customer import Customer
from tests.integration.resources.gate.brokers.brokered import LOOPBACK, Ports
from tests.integration.resources.gate.brokers.test_postgres import NAME, enter, login_of
from tests.scram_server import ScramServer
from tests.tls_certificates import TestAuthority

WRONG = "wrong-and-secret"


def refused(
    opened: Ports, target: int, customer: Customer, run: dict[str, Any], **changes: Any
) -> tuple[str, ConnectionReason]:
    """Return what the client was told, and the reason that operators see."""
    login = login_of(customer, **changes)
    port = opened.broker(PostgresBroker(login, Share()), target)
    with pytest.raises(psycopg.OperationalError) as caught:
        enter(port, login, **run)
    ended = opened.wait_ended(1)[-1]
    assert isinstance(ended, ConnectionEnded)
    assert WRONG not in f"{caught.value}{ended}"
    return str(caught.value), ended.reason


@pytest.mark.parametrize("user", ["shop_reader", "nobody_here"])
def test_a_wrong_login_is_refused_in_the_servers_words(
    customer: Customer, opened: Ports, user: str
) -> None:
    told, reason = refused(opened, customer.port, customer, {}, user=user, password=WRONG)
    assert f'password authentication failed for user "{user}"' in told
    assert reason == ConnectionReason.LOGIN


def test_an_error_after_the_authentication_is_a_refused_login(
    customer: Customer, opened: Ports
) -> None:
    told, reason = refused(opened, customer.port, customer, {}, dbname="no_such_database")
    assert "no_such_database" in told
    assert reason == ConnectionReason.LOGIN


def test_a_definition_without_a_password_is_told_apart(customer: Customer, opened: Ports) -> None:
    told, reason = refused(opened, customer.port, customer, {}, password="")
    assert "asks for a password, and the definition has none" in told
    assert reason == ConnectionReason.LOGIN


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({"user": "postgres"}, "user 'postgres' is not this resource's"),
        ({"dbname": "postgres"}, "connect as user 'shop_reader' to database 'shop'"),
        ({"replication": "database"}, "'replication' is not passed on"),
    ],
)
def test_a_run_gets_its_own_user_and_database_only(
    customer: Customer, opened: Ports, run: dict[str, str], told: str
) -> None:
    said, reason = refused(opened, 1, customer, run)  # nothing is connected
    assert told in said
    assert reason == ConnectionReason.NOT_ALLOWED


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("other.invalid", {"sslmode": "verify-full"}, "certificate is not valid for"),
        ("other.invalid", {"sslmode": "require"}, "certificate is not valid for"),
        (NAME, {"sslmode": "verify-full", "ca": "other"}, "is not accepted"),
        (NAME, {"sslmode": "verify-ca", "ca": ""}, "is not accepted"),
    ],
)
def test_a_server_must_prove_its_name(
    customer: Customer,
    opened: Ports,
    authority: TestAuthority,
    other_authority: TestAuthority,
    name: str,
    changes: dict[str, str],
    told: str,
) -> None:
    trusted = {"other": other_authority.pem, "": ""}.get(changes.get("ca", "own"), authority.pem)
    front = opened.tls_front(authority.issue(name).server_context(), customer.port)
    said, reason = refused(opened, front, customer, {}, **changes | {"ca": trusted})
    assert told in said
    assert reason == ConnectionReason.CERTIFICATE


def test_a_server_without_tls_gets_no_password(customer: Customer, opened: Ports) -> None:
    told, reason = refused(opened, customer.port, customer, {}, sslmode="require")
    assert "has no TLS" in told
    assert reason == ConnectionReason.CERTIFICATE


def test_a_server_that_is_away(customer: Customer, opened: Ports) -> None:
    with socket.create_server((LOOPBACK, 0)) as closed:
        port = closed.getsockname()[1]
    told, reason = refused(opened, port, customer, {})
    assert f"{NAME}:{customer.port} cannot be reached: Connection refused" in told
    assert "127.0.0.1" not in told.partition("FATAL")[2]
    assert reason == ConnectionReason.UNREACHABLE


def test_a_server_that_is_silent(customer: Customer, opened: Ports) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        told, reason = refused(opened, silent.getsockname()[1], customer, {}, connect_timeout_s=0.2)
    assert "did not answer within 0.2 s" in told
    assert reason == ConnectionReason.UNREACHABLE


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the protocol of PostgreSQL"),
        (b"", "ended the connection during the login"),
        (message(b"R", b"\0\0\0\x07"), "authentication of kind 7, which is not supported"),
        (message(b"R", b"\0\0\0\x0bv=x"), "did not begin"),
        (message(b"R", b"\0\0\0\x0aSCRAM-SHA-1\0\0"), "offers SCRAM-SHA-1 only"),
    ],
)
def test_a_server_that_speaks_otherwise(
    customer: Customer, opened: Ports, answer: bytes, told: str
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)

    said, _ = refused(opened, opened.open(handle), customer, {}, sslmode="disable")
    assert told in said


def test_an_address_that_is_refused_is_not_explained_to_the_run(
    customer: Customer, opened: Ports
) -> None:
    login = login_of(customer)
    error = ConnectionEnded(ConnectionReason.ADDRESS_REFUSED, "10.0.0.1 is a private address")
    port = opened.broker(PostgresBroker(login, Share()), 1, error=error)
    with pytest.raises(psycopg.OperationalError, match="may not be connected to") as caught:
        enter(port, login)
    assert "10.0.0.1" not in str(caught.value)
    (ended,) = opened.wait_ended(1)
    assert isinstance(ended, ConnectionEnded)
    assert ended.reason == ConnectionReason.ADDRESS_REFUSED


@pytest.mark.parametrize(
    "first", [b"\x16\x03\x01\x00\xa5", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x09\0\x02\0\0\0"]
)
def test_garbage_gets_an_error(customer: Customer, opened: Ports, first: bytes) -> None:
    port = opened.broker(PostgresBroker(login_of(customer), Share()), 1)
    with socket.create_connection((LOOPBACK, port), timeout=10) as client:
        client.sendall(first)
        answer = client.recv(1000)
    assert answer[:1] == b"E"
    assert b"C08P01\0" in answer
    assert b"sslmode=disable" in answer
    (ended,) = opened.wait_ended(1)
    assert isinstance(ended, ConnectionEnded)
    assert ended.reason == ConnectionReason.PROTOCOL


def test_a_client_that_only_looks_is_no_refusal(customer: Customer, opened: Ports) -> None:
    port = opened.broker(PostgresBroker(login_of(customer), Share()), 1)
    socket.create_connection((LOOPBACK, port), timeout=10).close()
    assert opened.wait_ended(1) == [None]


def test_the_login_is_bound_to_the_servers_certificate(
    customer: Customer, opened: Ports, authority: TestAuthority
) -> None:
    """No embedded server has TLS, so this one is ours; NegotiateProtocolVersion comes along."""
    login = login_of(customer, sslmode="verify-full", ca=authority.pem)
    certificate = authority.issue(NAME)
    context = certificate.server_context()
    der = ssl.PEM_cert_to_DER_cert(certificate.certfile.read_text())

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def told() -> bytes:
            head = await reader.readexactly(5)
            return await reader.readexactly(int.from_bytes(head[1:], "big") - 4)

        startup = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big") - 4)
        assert b"user\0shop_reader\0" in startup
        writer.write(message(b"R", b"\0\0\0\x0aSCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0"))
        name, _, first = (await told()).partition(b"\0")
        assert name == b"SCRAM-SHA-256-PLUS"
        scram = ScramServer(
            login.password.encode(),
            header=b"p=tls-server-end-point,,",
            binding=certificate_hash(der),
        )
        writer.write(message(b"R", b"\0\0\0\x0b" + scram.first(first[4:])))
        writer.write(message(b"R", b"\0\0\0\x0c" + scram.final(await told())))
        writer.write(message(b"R", bytes(4)) + message(b"K", b"\0\0\0\1\0\0\0\2"))
        writer.write(message(b"Z", b"I"))
        await reader.read()

    port = opened.broker(PostgresBroker(login, Share()), opened.after_tls_request(handle, context))
    with enter(port, login) as connection:
        assert connection.info.backend_pid == 1
