"""Our database backend; `reset` is what the connection pool runs when a connection comes back."""

from typing import Any

from psycopg import Connection

RESET = """
SELECT set_config('search_path', 'public', false), set_config('role', 'none', false), pg_advisory_unlock_all()"""


def reset(connection: Connection[Any]) -> None:
    """Leave every scope; the pool closes a connection for which this fails."""
    connection.execute(RESET)
    connection.commit()
