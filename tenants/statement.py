"""One statement of its own transaction, prepared per connection and scope: planning it takes longer than running it.

Timing: request-time and background-worker. Model: sync. Guarantee: runs in the scope entered, as all others do.
Failure: over a lost connection it is tried once more, unless in a transaction; so it must be safe to repeat.
"""

import functools
import re
from collections.abc import Iterable
from typing import Any, cast

import psycopg
from django.db import InterfaceError, OperationalError, connections

from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import ALIAS

Row = tuple[Any, ...]
_PARAMETER = re.compile(r"%\((\w+)\)s")


def text_set(values: Iterable[str]) -> str:
    """Constants of ours as an array in the text: as a parameter the driver would build it anew each time."""
    return "ARRAY[" + ", ".join(f"'{value}'" for value in values) + "]::text[]"


def fetch_row(statement: str, parameters: dict[str, Any]) -> Row | None:
    """Run a statement and return its first row."""
    connection = cast("DatabaseWrapper", connections[ALIAS])
    try:
        return _fetch_row(connection, statement, parameters)
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block:
            raise
        connection.close()
        return _fetch_row(connection, statement, parameters)


def _fetch_row(
    connection: DatabaseWrapper, statement: str, parameters: dict[str, Any]
) -> Row | None:
    connection.ready()
    text, names = _of_scope(statement, connection.wanted.search_path)
    # Django's own cursors put the values into the text, and such a text is planned anew each time.
    with connection.wrap_database_errors, psycopg.RawCursor(connection.connection) as cursor:
        cursor.execute(text, [parameters[name] for name in names])
        row: Row | None = cursor.fetchone()
    return row


@functools.lru_cache(maxsize=4096)
def _of_scope(statement: str, search_path: str) -> tuple[bytes, tuple[str, ...]]:
    """A text of the scope's own: PostgreSQL drops the plan of a statement that is run in another scope than before."""
    text, names = numbered(statement)
    return f"{text}\n-- {search_path}".encode(), names


@functools.cache
def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement as PostgreSQL takes it, and the names of its parameters in order. Pure.

    The driver does the same, but remembers 128 texts only, none of over 4096 bytes; and each tenant has its own.
    """
    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(
        lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", statement
    )
    if "%" in text:
        raise ValueError(f"parameters are written %(name)s, and nothing else with %: {statement}")
    return text, tuple(numbers)
