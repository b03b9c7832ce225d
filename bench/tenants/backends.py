"""The backends of the measured process as PostgreSQL and the kernel see them."""

from collections.abc import Callable
from dataclasses import dataclass

import psutil
import psycopg

# Statements by the names that they carry; submit is web's.
PLANNING = """
SELECT coalesce(sum(calls), 0)::float8, coalesce(sum(plans), 0)::float8, coalesce(sum(total_plan_time), 0)
FROM pg_stat_statements WHERE query LIKE '%isolane:%' AND query NOT LIKE '%isolane:submit %'"""
# Not the one that submits, nor the one that asks.
BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> ALL(%s)"""


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Statements since the last reset."""

    calls: float
    plans: float
    ms: float


class Backends:
    """A look from the server's side."""

    def __init__(self, url: str, *, submitter: Callable[[], int]) -> None:
        """Look at all backends but the submitter's, whose connection may be replaced meanwhile."""
        self._server = psycopg.connect(url, dbname="isolane", autocommit=True)
        self._server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._submitter = submitter

    def reset(self) -> None:
        """Count statements anew."""
        self._server.execute("SELECT pg_stat_statements_reset()")

    def planning(self) -> Planning:
        """Return the statements since the reset, and how many of them were planned."""
        calls, plans, ms = self._server.execute(PLANNING).fetchone() or (0, 0, 0)
        return Planning(calls=calls, plans=plans, ms=ms)

    def cpu_ms(self) -> float:
        """Return the CPU time of the backends so far."""
        spent = [psutil.Process(pid).cpu_times() for pid in self._pids()]
        return 1000 * sum(float(one.user + one.system) for one in spent)

    def pss_mb(self) -> list[float]:
        """Return the PSS of each backend: its own memory, and its share of what it shares."""
        return [psutil.Process(pid).memory_full_info().pss / 2**20 for pid in self._pids()]

    def _pids(self) -> list[int]:
        others = [self._submitter(), self._server.info.backend_pid]
        return [int(pid) for (pid,) in self._server.execute(BACKENDS, [others]).fetchall()]
