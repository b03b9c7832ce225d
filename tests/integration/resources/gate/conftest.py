"""Servers behind TLS with an authority of their own, and sandboxes whose steps use them through the gate."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import redis

from tests.customer import Customer
from tests.integration.resources.gate.sandboxes import CACHE_USER, NAME, SECRET, Sandboxes
from tests.plugin import SERVERS
from tests.tls_certificates import TestAuthority
from tests.tls_servers.http2 import Http2Server
from tests.tls_servers.https import HttpsServer
from tests.tls_servers.relays import TlsPostgres, TlsRedis


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Sandboxes]:
    """The level process, with nodes that use their servers in every way."""
    with Sandboxes.started() as started:
        yield started


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    """An authority that nobody trusts who was not told to."""
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    """Another one."""
    return TestAuthority(tmp_path_factory.mktemp("other-authority"))


@pytest.fixture(scope="module")
def https(authority: TestAuthority) -> Iterator[HttpsServer]:
    """An API that speaks HTTP/1.1."""
    with HttpsServer(authority.issue(NAME)).serving() as server:
        yield server


@pytest.fixture(scope="module")
def http2(authority: TestAuthority) -> Iterator[Http2Server]:
    """One that speaks HTTP/2."""
    with Http2Server(authority.issue(NAME)).serving() as server:
        yield server


@pytest.fixture(scope="module")
def postgres(authority: TestAuthority, customer: Customer) -> Iterator[TlsPostgres]:
    """The customer's, behind TLS."""
    relay = TlsPostgres(authority.issue(NAME), to_host=customer.host, to_port=customer.port)
    with relay.serving() as server:
        yield server


@pytest.fixture(scope="module")
def cache(authority: TestAuthority, servers: None) -> Iterator[TlsRedis]:
    """The run cache behind TLS, with a user like those of runs."""
    port = urlsplit(SERVERS.cache_url).port or 0
    with redis.Redis.from_url(SERVERS.cache_url) as administrator:
        administrator.acl_setuser(
            CACHE_USER, enabled=True, passwords=[f"+{SECRET}"], keys=["run:*"], categories=["+@all"]
        )
        relay = TlsRedis(authority.issue(NAME), to_host="127.0.0.1", to_port=port)
        with relay.serving() as server:
            yield server
        administrator.acl_deluser(CACHE_USER)
        administrator.flushall()
