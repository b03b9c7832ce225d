"""Seeing from the server's side that one statement waits for another."""

import psycopg

from tests.waiting import wait_for

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def wait_until_blocked(
    server: "psycopg.Connection[tuple[object, ...]]", statements: int = 1
) -> None:
    """Return once so many statements wait for a lock."""
    wait_for(
        lambda: server.execute(WAITING).fetchone() == (statements,),
        f"{statements} statements that wait for a lock",
    )
