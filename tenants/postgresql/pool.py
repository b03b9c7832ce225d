"""The pool of connections that web's threads share; callers do not wait for a server that is away.

Timing: request-time; the pool opens connections in its own threads.
Model: sync.
Guarantee: at-most-once; each request for a connection tries one, and may get one that died in the pool.
Failure: bubble; while no connection can be opened, waiting callers get the error at once.
"""

from typing import Any

from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool

RESET = """
SELECT set_config('search_path', 'public', false), set_config('role', 'none', false), pg_advisory_unlock_all()"""


class Pool(ConnectionPool[Connection[Any]]):
    """psycopg's pool without its retries: that one keeps trying with growing pauses while callers wait."""

    _reason = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(reconnect_timeout=0, reset=reset, **options)

    def _connect(self, timeout: float | None = None) -> Connection[Any]:
        try:
            return super()._connect(timeout)
        except Exception as error:
            self._reason = str(error)
            raise

    def distrust(self, dead: Connection[Any]) -> None:
        """Replace, once, all connections opened before this one was found dead: the cause has ended them, too."""
        if dead._created_at > self._drained_at:
            self.drain()

    def reconnect_failed(self) -> None:
        """Fail waiting callers with the reason, unless connections are in use and will come back."""
        with self._lock:
            if self._nconns:
                return
            waiting = list(self._waiting)
            self._waiting.clear()
        for client in waiting:
            client.fail(OperationalError(self._reason))


def reset(connection: Connection[Any]) -> None:
    """Leave every scope when a connection comes back; the pool closes it if this fails."""
    connection.execute(RESET)
    connection.commit()
