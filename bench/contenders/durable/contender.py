"""A chain with a row in PostgreSQL per step, as a team would write it with Django and Celery."""

import os
import time
from uuid import UUID, uuid4

from django.core.management import call_command

from bench.contenders.base import (
    DRAIN_POLL,
    DRAIN_SECONDS,
    ONE_POLL,
    ONE_SECONDS,
    Contender,
    wait_until,
)
from bench.contenders.durable.app import QUEUE, app, links
from bench.contenders.durable.models import Step
from bench.contenders.gate import Gate


class Durable(Contender):
    """A contender whose runs end when their last row is done."""

    def __init__(self) -> None:
        app.set_default()
        self._gate = Gate(os.environ["BENCH_REDIS_URL"], QUEUE)
        self._first = 0

    def prepare(self) -> None:
        """Create the table."""
        call_command("migrate", run_syncdb=True, verbosity=0)

    def ready(self) -> None:
        """Run once."""
        self.one(steps=1)

    def fill(self, *, steps: int, runs: int) -> None:
        """Write the rows and send the first links to the gate."""
        for number in range(runs):
            run_id, last = _write(steps)
            self._first = last if number == 0 else self._first
            links(str(run_id), steps).apply_async(queue=self._gate.name)

    def drain(self) -> float:
        """Open the gate and wait until all last steps of this backlog are done."""
        left = Step.objects.filter(pk__gte=self._first, is_last=True).exclude(state=Step.State.DONE)
        started = time.perf_counter()
        self._gate.open()
        wait_until(
            lambda: not left.exists(),
            what="the durable chains",
            seconds=DRAIN_SECONDS,
            poll=DRAIN_POLL,
        )
        return time.perf_counter() - started

    def one(self, *, steps: int) -> float:
        """Run a chain and poll its last row until it is done."""
        started = time.perf_counter()
        run_id, last = _write(steps)
        links(str(run_id), steps).apply_async()
        done = Step.objects.filter(pk=last, state=Step.State.DONE)
        wait_until(done.exists, what="a durable chain", seconds=ONE_SECONDS, poll=ONE_POLL)
        return time.perf_counter() - started


def _write(steps: int) -> tuple[UUID, int]:
    """Write the rows of one run; return its id and the key of its last row."""
    run_id = uuid4()
    rows = Step.objects.bulk_create(
        [
            Step(run_id=run_id, position=position, is_last=position == steps - 1)
            for position in range(steps)
        ]
    )
    return run_id, rows[-1].pk


def contender(_name: str) -> Contender:
    """Return the contender of this module."""
    return Durable()
