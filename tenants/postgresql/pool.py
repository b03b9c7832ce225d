"""The pool of connections that web's threads share; it does not make callers wait for a server that is away.

Timing: request-time; connections are opened in threads of the pool. Model: sync.
Guarantee: at-most-once; each who asks has one tried, and one that died in the pool is whoever's who takes it.
Failure: bubble; while none can be opened who waits is told so at once.
"""

from typing import Any

from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool

RESET = """
SELECT set_config('search_path', 'public', false), set_config('role', 'none', false), pg_advisory_unlock_all()"""


class Pool(ConnectionPool[Connection[Any]]):
    """The usual one keeps on trying by itself, less and less often, and lets everybody wait meanwhile."""

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
        """Replace all that were opened before this one was found dead, once: what ended it has ended them, too."""
        if dead._created_at > self._drained_at:
            self.drain()

    def reconnect_failed(self) -> None:
        """No connection could be opened: tell those who wait why, unless others are in use and will come back."""
        with self._lock:
            if self._nconns:
                return
            waiting = list(self._waiting)
            self._waiting.clear()
        for client in waiting:
            client.fail(OperationalError(self._reason))


def reset(connection: Connection[Any]) -> None:
    """Leave every scope when a connection comes back; the pool closes one for which this fails."""
    connection.execute(RESET)
    connection.commit()
