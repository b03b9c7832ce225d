"""One statement of its own transaction, prepared once per connection: planning these takes longer than running them.

Timing: request-time and background-worker. Model: sync. Guarantee: runs in the scope entered, as all others do.
Failure: over a lost connection it is tried once more, unless in a transaction; so it must be safe to repeat.
"""

from typing import Any, cast

import psycopg
from django.db import OperationalError, connections

from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import ALIAS

Row = tuple[Any, ...]


def fetch_row(statement: str, parameters: dict[str, Any]) -> Row | None:
    """Run a statement and return its first row."""
    connection = cast("DatabaseWrapper", connections[ALIAS])
    try:
        return _fetch_row(connection, statement, parameters)
    except OperationalError:
        if connection.in_atomic_block:
            raise
        connection.close()
        return _fetch_row(connection, statement, parameters)


def _fetch_row(
    connection: DatabaseWrapper, statement: str, parameters: dict[str, Any]
) -> Row | None:
    connection.ensure_connection()
    connection.assert_scope()
    # Django's own cursors put the values into the text, and such a text is planned anew each time.
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement, parameters, prepare=True)
        row: Row | None = cursor.fetchone()
    return row
