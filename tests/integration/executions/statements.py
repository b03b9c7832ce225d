"""Statements from the server's side: how many there were, and what happens when the answer to one is lost."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import OperationalError

from tenants import statement
from tenants.statement import Parameters, Statement

Server = psycopg.Connection[tuple[Any, ...]]
# What the server asks itself at the end of a transaction, to check foreign keys, nobody has sent.
CALLS = """
SELECT s.query, sum(s.calls)::int FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
WHERE r.rolname LIKE 'isolane%' AND s.query NOT LIKE '%FOR KEY SHARE OF x' GROUP BY s.query"""


@contextmanager
def counted(server: Server) -> Iterator["Counter[str]"]:
    """Filled, when the block ends, with the statements that came meanwhile and how often each did."""
    server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    found: Counter[str] = Counter()
    before = _calls(server)
    yield found
    found.update(_calls(server) - before)


def _calls(server: Server) -> "Counter[str]":
    return Counter({" ".join(query.split()): calls for query, calls in server.execute(CALLS)})


def is_named(text: str, name: str) -> bool:
    """Return True if a text, ours or the server's, is that of the statement with this name."""
    return f"/* isolane:{name} */" in text


def lose_answers(monkeypatch: pytest.MonkeyPatch, server: Server, to: str) -> list[str]:
    """The connection is lost after the first statement with this name was committed; returns which it was."""
    real = statement._fetch_row
    lost: list[str] = []

    def fetch(connection: Any, asked: Statement[Any], parameters: Parameters) -> Any:
        row = real(connection, asked, parameters)
        if lost or not is_named(asked.text, to):
            return row
        lost.append(asked.text)
        pid = connection.connection.info.backend_pid
        server.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(statement, "_fetch_row", fetch)
    return lost
