"""Seeing from the server's side that one statement waits for another."""

import psycopg

from tests.waiting import wait_for

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def wait_until_blocked(server: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Return once some statement waits for a lock."""
    wait_for(lambda: server.execute(WAITING).fetchone(), "a statement that waits for a lock")
