"""A chain whose every step has a row in PostgreSQL, as a team writes it with Django and Celery."""

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
    """The end of a run is the state of its last row."""

    def __init__(self) -> None:
        app.set_default()
        self._gate = Gate(os.environ["BENCH_REDIS_URL"], QUEUE)
        self._first = 0

    def prepare(self) -> None:
        """Make the table."""
        call_command("migrate", run_syncdb=True, verbosity=0)

    def ready(self) -> None:
        """One run through the worker."""
        self.one(steps=1)

    def fill(self, *, steps: int, runs: int) -> None:
        """Write the rows and send the first links to where no worker looks."""
        for number in range(runs):
            run_id, last = _write(steps)
            self._first = last if number == 0 else self._first
            links(str(run_id), steps).apply_async(queue=self._gate.name)

    def drain(self) -> float:
        """Until no last step of this backlog is left."""
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
        """Look at the last row until it is done."""
        started = time.perf_counter()
        run_id, last = _write(steps)
        links(str(run_id), steps).apply_async()
        done = Step.objects.filter(pk=last, state=Step.State.DONE)
        wait_until(done.exists, what="a durable chain", seconds=ONE_SECONDS, poll=ONE_POLL)
        return time.perf_counter() - started


def _write(steps: int) -> tuple[UUID, int]:
    """The rows of one run; returns its id and the key of its last row."""
    run_id = uuid4()
    rows = Step.objects.bulk_create(
        [
            Step(run_id=run_id, position=position, is_last=position == steps - 1)
            for position in range(steps)
        ]
    )
    return run_id, rows[-1].pk


def contender(_name: str) -> Contender:
    """The one of this module."""
    return Durable()
