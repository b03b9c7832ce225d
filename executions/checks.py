"""The one place where requests work on what a caller wrote: without a connection, and not many at once.

Timing: request-time, and background-worker where the same services run. Model: sync.
Guarantee: inside the block no statement can be sent, and the scope is as before after it; how long the work may take is
bounded by `executions.blueprint.work`. Failure: TooManyChecks if no place came free in time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from executions.blueprint.work import Watch, watched
from executions.gate import Gate
from tenants.scope import entered, without_connection

GATE = Gate()


def _let_others_run() -> None:
    """Let go of Python's global lock: a thread that waits for it would lose 5 ms each time that it needs it."""
    time.sleep(0)


WATCH = Watch(clock=time.thread_time, rest=_let_others_run)


@contextmanager
def checking() -> Iterator[None]:
    """Work on a document or values of the tenant entered until the block ends."""
    with without_connection(), GATE.place(entered().role), watched(WATCH):
        yield
