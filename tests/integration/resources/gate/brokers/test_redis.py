"""resources.gate.brokers.redis: a real client at a real Valkey, without a password inside."""

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from resources.gate.brokers.redis import RedisBroker, RedisLogin
from resources.gate.brokers.share import Share
from resources.gate.record import ConnectionEnded, ConnectionReason
from tests.integration.resources.gate.brokers.brokered import LOOPBACK, Ports, join
from tests.plugin import SERVERS
from tests.tls_certificates import TestAuthority

NAME = "cache.invalid"
WRONG = "wrong-and-secret"
pytestmark = pytest.mark.usefixtures("run_cache")


def server() -> int:
    return urlsplit(SERVERS.cache_url).port or 0


def login_of(**changes: Any) -> RedisLogin:
    password = urlsplit(SERVERS.cache_url).password
    values: dict[str, Any] = {
        "host": NAME, "port": 6379, "username": "default", "password": password, "tls": False,
    }  # fmt: skip
    return RedisLogin(**values | changes)


def tls_front(opened: Ports, authority: TestAuthority, name: str) -> int:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await join(reader, writer, server())

    return opened.open(pass_on, authority.issue(name).server_context())


def refused(opened: Ports, target: int, login: RedisLogin) -> tuple[bytes, ConnectionReason]:
    port = opened.broker(RedisBroker(login, Share()), target)
    with socket.create_connection((LOOPBACK, port), timeout=10) as client:
        told = client.makefile("rb").read()
    (ended,) = opened.wait_ended(1)
    assert isinstance(ended, ConnectionEnded)
    assert WRONG not in f"{told!r}{ended}"
    return told, ended.reason


def test_a_client_works_as_if_it_had_logged_in(opened: Ports) -> None:
    port = opened.broker(RedisBroker(login_of(), Share()), server())
    with redis.Redis(host=LOOPBACK, port=port, protocol=2, single_connection_client=True) as client:
        assert client.set("key", b"x" * 1_000_000)
        assert client.get("key") == b"x" * 1_000_000
    assert opened.wait_ended(1) == [None]


@pytest.mark.parametrize("has_tls", [False, True])
def test_commands_sent_at_once_are_answered_after_the_login(
    opened: Ports, authority: TestAuthority, has_tls: bool
) -> None:
    target = tls_front(opened, authority, NAME) if has_tls else server()
    login = login_of(tls=has_tls, ca=authority.pem)
    port = opened.broker(RedisBroker(login, Share()), target)
    with socket.create_connection((LOOPBACK, port), timeout=10) as client:
        client.sendall(b"PING\r\nECHO hello\r\nQUIT\r\n")
        assert client.makefile("rb").read() == b"+PONG\r\n$5\r\nhello\r\n+OK\r\n"
    opened.wait_ended(1)


def test_a_wrong_password_is_refused_in_the_servers_words(opened: Ports) -> None:
    told, reason = refused(opened, server(), login_of(password=WRONG))
    assert told.startswith(b"-WRONGPASS ")
    assert reason == ConnectionReason.LOGIN


@pytest.mark.parametrize("name", [NAME, "other.invalid"])
def test_a_server_must_prove_its_name(
    opened: Ports, authority: TestAuthority, other_authority: TestAuthority, name: str
) -> None:
    ca = other_authority.pem if name == NAME else authority.pem
    told, reason = refused(opened, tls_front(opened, authority, name), login_of(tls=True, ca=ca))
    assert told.startswith(b"-ERR the certificate of the run cache is not accepted")
    assert reason == ConnectionReason.CERTIFICATE


def test_a_server_that_is_away(opened: Ports) -> None:
    with socket.create_server((LOOPBACK, 0)) as closed:
        port = closed.getsockname()[1]
    told, reason = refused(opened, port, login_of())
    assert told == b"-ERR the run cache cannot be reached: Connection refused\r\n"
    assert reason == ConnectionReason.UNREACHABLE


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"x" * 200_000])
def test_a_server_that_speaks_otherwise(opened: Ports, answer: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)

    told, reason = refused(opened, opened.open(handle), login_of())
    assert b"does not speak the protocol of Redis" in told
    assert reason == ConnectionReason.PROTOCOL
