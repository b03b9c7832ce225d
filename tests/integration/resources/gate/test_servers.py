"""HTTPS, HTTP/2, TLS PostgreSQL and TLS Redis through the gate: names are verified, whoever logs in."""

import json
import re
import socket
from typing import Any

import pytest

from isolane.protocol import Grant
from isolane.results import StepResult
from tests.customer import Customer
from tests.integration.resources.gate.sandboxes import (
    CACHE_USER,
    CONNECTIONS,
    NAME,
    SECRET,
    Sandboxes,
    cache_grant,
    database_grant,
    http_grant,
    model_grant,
    reasons,
)
from tests.requirements import HAS_IPV6, give_up
from tests.tls_certificates import TestAuthority
from tests.tls_servers.http2 import Http2Server
from tests.tls_servers.https import HttpsServer
from tests.tls_servers.relays import TlsPostgres, TlsRedis
from tests.tls_servers.server import TlsServer

OTHER_NAME = "other.example.test"
MODES = ("brokered", "inside")
HttpServer = HttpsServer | Http2Server
# As our own clients and brokers say it, and libpq.
FAULTS = {
    "name": "certificate .*(Hostname mismatch|does not match host name)",
    "authority": "certificate .*(local issuer certificate|self-signed certificate|verify failed)",
}


def login_of(customer: Customer) -> tuple[str, str, str]:
    return customer.dbname, customer.reader.user, customer.reader.password


@pytest.mark.parametrize("credentials", MODES)
@pytest.mark.parametrize(("kind", "version"), [("https", "HTTP/1.1"), ("http2", "HTTP/2")])
def test_http_is_asked_by_the_handle(
    sandboxes: Sandboxes,
    authority: TestAuthority,
    request: pytest.FixtureRequest,
    *,
    kind: str,
    version: str,
    credentials: str,
) -> None:
    server: HttpServer = request.getfixturevalue(kind)
    grant = http_grant(server, authority.pem, credentials=credentials, http2=kind == "http2")
    names = len(server.server_names)
    with sandboxes.run(grant) as run:
        told = run.output("servers.http_api")["told"]
    assert (told["version"], told["authorization"]) == (version, f"Bearer {SECRET}")
    assert server.server_names[names:] == [NAME]
    (record,) = run.records
    assert (record.host, record.port, record.definition) == (NAME, server.port, "http_api")
    assert min(record.sent, record.received) > 0


@pytest.mark.parametrize("credentials", MODES)
def test_a_model_is_asked_by_the_handle(
    sandboxes: Sandboxes, authority: TestAuthority, https: HttpsServer, *, credentials: str
) -> None:
    names = len(https.server_names)
    with sandboxes.run(model_grant(https, authority.pem, credentials=credentials)) as run:
        assert run.output("servers.model") == "HTTP/1.1"
    assert https.endpoints.requests[-1].header("authorization") == f"Bearer {SECRET}"
    assert https.server_names[names:] == [NAME]
    (record,) = run.records
    assert (record.host, record.port, record.definition) == (NAME, https.port, "model")


@pytest.mark.parametrize("credentials", MODES)
def test_http_is_asked_by_name_with_any_client(
    sandboxes: Sandboxes, authority: TestAuthority, https: HttpsServer, *, credentials: str
) -> None:
    grant = http_grant(https, authority.pem, credentials=credentials)
    place = {"host": NAME, "port": https.port}
    names = len(https.server_names)
    with sandboxes.run(grant) as run:
        own_tls = run.output("servers.http_api_by_name", **place, ca=authority.pem)
        assert json.loads(own_tls["told"])["authorization"] is None  # a tunnel adds nothing
        if credentials == "brokered":
            clear = run.output("servers.http_api_by_name", **place)
            assert json.loads(clear["told"])["authorization"] == f"Bearer {SECRET}"
        else:
            own = run.output(
                "servers.http_api_by_name", **place, ca=authority.pem, token="Bearer x"
            )
            assert json.loads(own["told"])["authorization"] == "Bearer x"
    assert https.server_names[names:] == [NAME, NAME]
    assert reasons(run.records) == ["closed", "closed"]


@pytest.mark.parametrize("credentials", MODES)
def test_a_database_is_queried_by_handle_and_by_name(
    sandboxes: Sandboxes,
    authority: TestAuthority,
    postgres: TlsPostgres,
    customer: Customer,
    *,
    credentials: str,
) -> None:
    dbname, user, password = login_of(customer)
    options = {"host": NAME, "port": postgres.port, "dbname": dbname, "user": user}
    if credentials == "brokered":
        by_name: dict[str, Any] = {"options": {**options, "sslmode": "disable"}}
    else:
        own = {**options, "sslmode": "verify-full", "password": password}
        by_name = {"options": own, "ca": authority.pem}
    grant = database_grant(
        postgres, authority.pem, login=login_of(customer), credentials=credentials
    )
    names = len(postgres.server_names)
    with sandboxes.run(grant) as run:
        assert run.output("servers.database") == {"dbname": dbname, "user": user}
        told = run.output("servers.database_by_name", **by_name)
        assert told == {"dbname": dbname, "user": user}
    assert postgres.server_names[names:] == [NAME, NAME]
    assert postgres.in_clear == 0
    assert [(record.host, record.definition) for record in run.records] == [(NAME, "database")] * 2


@pytest.mark.parametrize("credentials", MODES)
def test_a_cache_is_used_by_handle_and_by_name(
    sandboxes: Sandboxes, authority: TestAuthority, cache: TlsRedis, *, credentials: str
) -> None:
    place: dict[str, Any] = {"host": "run-cache", "port": 6379}
    by_name: dict[str, Any] = {"options": place}
    if credentials == "inside":
        place = {"host": NAME, "port": cache.port, "username": CACHE_USER, "password": SECRET}
        by_name = {"options": place, "ca": authority.pem}
    names = len(cache.server_names)
    with sandboxes.run(cache_grant(cache, authority.pem, credentials=credentials)) as run:
        told = run.output("servers.cache")
        assert told == {"value": ["value"], "user": CACHE_USER}
        own = run.output("servers.cache_by_name", key="run:own", **by_name)
        assert own == {"value": "value", "user": CACHE_USER}
    assert cache.server_names[names:] == [NAME, NAME]
    assert {record.definition for record in run.records} == {"cache"}
    # TLS cannot end one direction alone: the run's end is the end of what it has closed.
    assert reasons(run.records) == ["closed", "closed"]


@pytest.mark.parametrize("credentials", MODES)
def test_a_statement_is_cancelled(
    sandboxes: Sandboxes,
    authority: TestAuthority,
    postgres: TlsPostgres,
    customer: Customer,
    *,
    credentials: str,
) -> None:
    login = login_of(customer)
    grant = database_grant(postgres, authority.pem, login=login, credentials=credentials)
    with sandboxes.run(grant) as run:
        assert run.output("servers.database_cancel") == ["QueryCanceled"]


def test_connections_that_are_closed_make_room_at_once(
    sandboxes: Sandboxes, authority: TestAuthority, cache: TlsRedis
) -> None:
    """Though TLS cannot tell the server, the server says nothing, and the next one comes before that is found."""
    with sandboxes.run(cache_grant(cache, authority.pem)) as run:
        assert run.output("servers.cache_in_a_row", number=20 * CONNECTIONS) == 20 * CONNECTIONS
    assert set(reasons(run.records)) == {"closed"}


@pytest.mark.parametrize("credentials", MODES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["https", "http2", "model", "postgres", "cache"])
def test_a_certificate_of_another_name_or_authority_is_refused(
    sandboxes: Sandboxes,
    authority: TestAuthority,
    other_authority: TestAuthority,
    request: pytest.FixtureRequest,
    *,
    kind: str,
    fault: str,
    credentials: str,
) -> None:
    server: TlsServer = request.getfixturevalue("https" if kind == "model" else kind)
    trusted = authority if fault == "name" else other_authority
    changes: dict[str, Any] = {"credentials": credentials}
    if fault == "name":
        changes["name"] = OTHER_NAME
    grant = grant_of(kind, server, trusted.pem, request, changes)
    with sandboxes.run(grant) as run:
        said = error_of(run.result(f"servers.{grant.type}"))
    assert re.search(FAULTS[fault], said), said
    assert not any(secret in said for secret in grant.secrets.values())
    if credentials == "brokered":
        assert reasons(run.records) == ["certificate"]
        assert run.records[0].is_refusal


def grant_of(
    kind: str, server: TlsServer, ca: str, request: pytest.FixtureRequest, changes: dict[str, Any]
) -> Grant:
    if kind == "cache":
        return cache_grant(server, ca, **changes)
    if kind == "postgres":
        login = login_of(request.getfixturevalue("customer"))
        return database_grant(server, ca, login=login, **changes)
    if kind == "model":
        return model_grant(server, ca, **changes)
    if kind == "http2":
        changes["http2"] = True
    return http_grant(server, ca, **changes)


def error_of(result: StepResult) -> str:
    """Return the step's error, or what an HTTP client was told: the broker's answer is a response."""
    if result.status == "succeeded":
        assert result.output["status"] in {None, 502}, result
        return str(result.output["told"])
    return str(result.message)


@pytest.mark.parametrize("credentials", MODES)
def test_a_name_has_an_address_of_ipv6_that_works(
    sandboxes: Sandboxes, authority: TestAuthority, https: HttpsServer, *, credentials: str
) -> None:
    if not HAS_IPV6:
        give_up("this machine has no IPv6")
    ca = authority.pem if credentials == "inside" else ""
    with sandboxes.run(http_grant(https, authority.pem, credentials=credentials)) as run:
        told = run.output(
            "servers.http_api_by_name", host=NAME, port=https.port, ca=ca, family=socket.AF_INET6
        )
    assert told["status"] == 200
    assert told["families"] == sorted([socket.AF_INET, socket.AF_INET6])
    assert reasons(run.records) == ["closed"]


def test_two_tenants_reach_their_own_servers_of_one_name(
    sandboxes: Sandboxes, authority: TestAuthority
) -> None:
    certificate = authority.issue(NAME)
    one, other = HttpsServer(certificate), HttpsServer(certificate, host="127.0.0.2")
    with one.serving():
        other.port = one.port  # so that nothing but the run tells them apart
        with other.serving():
            first = http_grant(one, authority.pem, secret="s3cret-of-acme")
            second = http_grant(other, authority.pem, secret="s3cret-of-globex")
            with (
                sandboxes.run(first, tenant_id=1) as acme,
                sandboxes.run(second, tenant_id=2) as globex,
            ):
                for run in (acme, globex, acme):
                    run.output("servers.http_api")
                    run.output("servers.http_api_by_name", host=NAME, port=one.port)
    assert seen_by(one) == ["Bearer s3cret-of-acme"] * 4
    assert seen_by(other) == ["Bearer s3cret-of-globex"] * 2
    assert (len(acme.records), len(globex.records)) == (3, 2)


def seen_by(server: HttpsServer) -> list[str | None]:
    return [seen.header("authorization") for seen in server.endpoints.requests]
