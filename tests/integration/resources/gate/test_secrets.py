"""A step that searches all that it can read finds no secret of what is brokered, and finds those that are inside."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any

import pytest
import redis
from psycopg import sql

from isolane.protocol import Grant
from tests.customer import Customer
from tests.integration.resources.gate.sandboxes import (
    NAME,
    SILENT,
    Sandboxes,
    cache_grant,
    database_grant,
    http_grant,
    model_grant,
)
from tests.plugin import SERVERS
from tests.secret_search import Needle, needle_of, needles_of
from tests.tls_certificates import TestAuthority
from tests.tls_servers.https import HttpsServer
from tests.tls_servers.relays import TlsPostgres, TlsRedis

RESOURCES = ("http_api", "model", "database", "cache")
USER = "gate_searched"


@dataclass(frozen=True)
class Secrets:
    """One for each resource, all with a part in common, which finds any of them."""

    common: str
    verifier: str  # of the database's password, as its server has it

    def of(self, resource: str) -> str:
        return f"{self.common}.{resource}"


@pytest.fixture
def secrets(customer: Customer, servers: None) -> Iterator[Secrets]:
    """Let a database and a cache know users with these passwords."""
    common = token_urlsafe(24)
    with customer.connect() as superuser, redis.Redis.from_url(SERVERS.cache_url) as administrator:
        password = f"{common}.database"
        verifier = superuser.pgconn.encrypt_password(
            password.encode(), USER.encode(), b"scram-sha-256"
        ).decode()
        superuser.execute(
            sql.SQL(
                "CREATE ROLE {0} LOGIN PASSWORD {1}; GRANT CONNECT ON DATABASE shop TO {0}"
            ).format(sql.Identifier(USER), sql.Literal(verifier))
        )
        administrator.acl_setuser(
            USER, enabled=True, passwords=[f"+{common}.cache"], keys=["run:*"], categories=["+@all"]
        )
        yield Secrets(common, verifier)
        administrator.acl_deluser(USER)
        superuser.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(USER)))


@dataclass(frozen=True)
class Servers:
    """The servers of the resources."""

    https: HttpsServer
    postgres: TlsPostgres
    cache: TlsRedis
    dbname: str
    authority: TestAuthority

    def grants(self, secrets: Secrets, *, credentials: str) -> list[Grant]:
        ca, how = self.authority.pem, {"credentials": credentials}
        login = (self.dbname, USER, secrets.of("database"))
        basic = {
            "auth": "basic",
            "user": USER,
            "base_url": f"https://{NAME}:{self.https.port}{SILENT}",
        }
        return [
            http_grant(self.https, ca, secret=secrets.of("http_api"), **basic, **how),
            model_grant(self.https, ca, secret=secrets.of("model"), **how),
            database_grant(self.postgres, ca, login=login, **how),
            cache_grant(self.cache, ca, user=USER, secret=secrets.of("cache"), **how),
        ]


@pytest.fixture
def remote(
    https: HttpsServer,
    postgres: TlsPostgres,
    cache: TlsRedis,
    customer: Customer,
    authority: TestAuthority,
) -> Servers:
    return Servers(https, postgres, cache, customer.dbname, authority)


def searched(sandboxes: Sandboxes, grants: list[Grant], needles: list[Needle]) -> dict[str, Any]:
    with sandboxes.run(*grants) as run:
        found: dict[str, Any] = run.output(
            "secrets.search", resources=list(RESOURCES), needles=needles
        )
    assert len(found["answers"]) == 2 * len(RESOURCES)  # they work before and after
    assert {answer.get("status", 200) for answer in found["answers"]} == {200}
    return found


def test_a_step_finds_no_secret_of_a_brokered_resource(
    sandboxes: Sandboxes, remote: Servers, secrets: Secrets
) -> None:
    needles = [*needles_of(secrets.common), *made_of_the_password(secrets)]
    grants = remote.grants(secrets, credentials="brokered")
    found = searched(sandboxes, grants, needles)
    assert found["hits"] == []
    assert all(number > 0 for number in found["searched"].values()), found["searched"]
    # The remote servers got the secrets all the same.
    login = base64.b64encode(f"{USER}:{secrets.of('http_api')}".encode()).decode()
    sent = {seen.header("authorization") for seen in remote.https.endpoints.requests}
    assert sent >= {f"Basic {login}", f"Bearer {secrets.of('model')}"}


def made_of_the_password(secrets: Secrets) -> Iterator[Needle]:
    """Yield what a login computes, with which anybody could log in."""
    rounds, salt = secrets.verifier.split("$")[1].split(":")
    salted = hashlib.pbkdf2_hmac(
        "sha256", secrets.of("database").encode(), base64.b64decode(salt), int(rounds)
    )
    for name, key in {
        "salted password": salted,
        "client key": hmac.digest(salted, b"Client Key", "sha256"),
    }.items():
        yield needle_of(name, key)
        yield needle_of(f"{name} in Base64", base64.b64encode(key))


def test_a_step_finds_the_secrets_that_are_inside(
    sandboxes: Sandboxes, remote: Servers, secrets: Secrets
) -> None:
    needles = [needle_of(kind, secrets.of(kind).encode()) for kind in RESOURCES]
    login = f"{USER}:{secrets.of('http_api')}".encode()
    needles.append(needle_of("header", base64.b64encode(login)))
    grants = remote.grants(secrets, credentials="inside")
    found = searched(sandboxes, grants, needles)
    in_memory = {hit.split(": ")[1] for hit in found["hits"] if hit.startswith("memory ")}
    assert in_memory == {*RESOURCES, "header"}
