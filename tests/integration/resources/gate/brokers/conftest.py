"""Ports for brokers and servers, and logins of every kind at a customer's PostgreSQL."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.customer import Customer
from tests.integration.resources.gate.brokers.brokered import Ports, ports

PASSWORD = "correct horse of the broker"
# How the server asks each user for a password.
METHODS = {"gate_md5": "md5", "gate_trust": "trust", "gate_clear": "password"}


@pytest.fixture
def opened() -> Iterator[Ports]:
    """Ports that are closed with the test."""
    with ports() as found:
        yield found


@pytest.fixture(scope="module")
def methods(customer: Customer) -> Iterator[None]:
    """The users of METHODS, and lines that let the server treat them so."""
    with customer.connect() as superuser:
        before = _hba(superuser)
        _write_hba(
            superuser,
            [f"host all {user} 127.0.0.1/32 {method}" for user, method in METHODS.items()] + before,
        )
        for user in METHODS:
            _create(superuser, user, b"md5" if user == "gate_md5" else b"scram-sha-256")
        yield
        _write_hba(superuser, before)
        for user in METHODS:
            superuser.execute(
                sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(user))
            )


def _create(superuser: "psycopg.Connection[psycopg.rows.DictRow]", user: str, kind: bytes) -> None:
    verifier = superuser.pgconn.encrypt_password(PASSWORD.encode(), user.encode(), kind).decode()
    superuser.execute(
        sql.SQL("CREATE ROLE {0} LOGIN PASSWORD {1}; GRANT CONNECT ON DATABASE shop TO {0}").format(
            sql.Identifier(user), sql.Literal(verifier)
        )
    )


def _hba(superuser: "psycopg.Connection[psycopg.rows.DictRow]") -> list[str]:
    row = superuser.execute("SELECT pg_read_file(current_setting('hba_file')) AS text").fetchone()
    assert row
    return str(row["text"]).splitlines()


def _write_hba(superuser: "psycopg.Connection[psycopg.rows.DictRow]", lines: list[str]) -> None:
    """By the server itself: the file is its account's."""
    row = superuser.execute("SELECT current_setting('hba_file') AS file").fetchone()
    assert row
    superuser.execute(
        sql.SQL("COPY (SELECT unnest({}::text[])) TO {}").format(
            sql.Literal([line for line in lines if not line.startswith("#")]),
            sql.Literal(row["file"]),
        )
    )
    superuser.execute("SELECT pg_reload_conf()")
