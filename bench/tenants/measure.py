"""Measure runs of so many tenants, with one way of using connections.

Timing: minutes.
Model: sync.
Guarantee: best-effort; what else the machine does is in the figures, too.
Failure: bubble.
"""

import itertools
import time
from collections.abc import Sequence

from django.conf import settings
from django.db import connection

from bench.tenants.backends import Backends
from bench.tenants.figures import TenantsFigure
from bench.tenants.runs import MeasuredWorker, check, make_tenants, submit_runs
from tenants.scope import TenantRef

AT_ONCE = 40  # runs that wait at a time: admission looks at each tenant that has one


def measure(
    superuser_url: str, *, tenants: int, connections: str, runs: int, warming: int
) -> TenantsFigure:
    """Make the tenants, warm the backends up, then measure."""
    if connections == "own":
        settings.DATABASES["default"]["KEPT_CONNECTIONS"] = 0
    made, worker = make_tenants(tenants), MeasuredWorker()
    backends = Backends(superuser_url, submitter=_own_backend)
    drain(worker, made, warming)
    backends.reset()
    before = backends.cpu_ms()
    seconds = drain(worker, made, runs)
    planning, cpu_ms, pss = backends.planning(), backends.cpu_ms() - before, backends.pss_mb()
    return TenantsFigure(
        tenants=tenants,
        connections=connections,
        runs=runs,
        statements=planning.calls / runs,
        planned=planning.plans / runs,
        planning_ms=planning.ms / runs,
        cpu_ms=cpu_ms / runs,
        total_ms=seconds * 1000 / runs,
        backends=len(pss),
        pss_mb=sum(pss),
        largest_mb=max(pss),
    )


def _own_backend() -> int:
    connection.ensure_connection()
    pid: int = connection.connection.info.backend_pid
    return pid


def drain(worker: MeasuredWorker, tenants: Sequence[TenantRef], runs: int) -> float:
    """Run so many runs, tenants in turn; return the seconds, without those of submitting and checking."""
    turn, seconds = itertools.cycle(tenants), 0.0
    for begun in range(0, runs, AT_ONCE):
        submitted = submit_runs(list(itertools.islice(turn, min(AT_ONCE, runs - begun))))
        started = time.perf_counter()
        worker.drain(len(submitted))
        seconds += time.perf_counter() - started
        check(submitted)
    return seconds
