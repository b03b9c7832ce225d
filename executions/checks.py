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
# After each millisecond of work; a check that takes less than one does not rest.
REST_SECONDS = 0.003


def _let_others_run() -> None:
    """Leave Python's global lock to other requests for three of four milliseconds."""
    time.sleep(REST_SECONDS)


WATCH = Watch(clock=time.thread_time, rest=_let_others_run)


@contextmanager
def checking() -> Iterator[None]:
    """Work on a document or values of the tenant entered until the block ends."""
    with without_connection(), GATE.place(entered().role), watched(WATCH):
        yield
