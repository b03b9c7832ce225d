"""Advisory locks in the database, for work that one worker does at a time.

Timing: background-worker.
Model: sync, one connection per thread.
Guarantee: best-effort; work done under a lock may be done twice.
Failure: a process that dies or is stopped loses its locks: the server ends its silent session.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

TRY = "SELECT pg_try_advisory_lock(%s), set_config('idle_session_timeout', %s, false)"
UNLOCK = "SELECT pg_advisory_unlock(%s), set_config('idle_session_timeout', '0', false)"


@contextmanager
def advisory_lock(number: int, *, silent_s: float) -> Iterator[bool]:
    """Try a lock of the connection's session; the server ends a session that is silent for so many seconds."""
    with connection.cursor() as cursor:
        cursor.execute(TRY, [number, f"{silent_s:g}s"])
        held: bool = cursor.fetchone()[0]
    try:
        yield held
    finally:
        if held:
            with connection.cursor() as cursor:
                cursor.execute(UNLOCK, [number])
