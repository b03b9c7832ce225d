"""The bounds of work on a caller's documents and values: without a connection, and not many at once.

`executions.blueprints.work` bounds the time that the work may take.

Timing: request-time, and background-worker where the same services run.
Model: sync.
Guarantee: no statement can be sent inside the block; after it the scope is as it was before.
Failure: TooManyChecks if no place came free in time.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from executions.blueprints.work import WorkClock, watched
from executions.submission.work_gate import WorkGate
from tenants.scope import entered, without_connection

GATE = WorkGate()
# Slept after each millisecond of work, so that a check takes at most a quarter of Python's time.
REST_SECONDS = 0.003


@contextmanager
def bounded_work() -> Iterator[None]:
    """Work on a document or values of the tenant entered until the block ends.

    Only a check that takes longer than a millisecond needs a place; short ones never wait for long ones.
    """
    with without_connection(), ExitStack() as place, watched(_watch(place)):
        yield


def _watch(place: ExitStack) -> WorkClock:
    tenant = entered().role

    def rest() -> None:
        nonlocal tenant
        if tenant:
            wanted, tenant = tenant, ""
            place.enter_context(GATE.place(wanted))
        time.sleep(REST_SECONDS)

    return WorkClock(clock=time.thread_time, rest=rest)
