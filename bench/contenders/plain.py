"""A chain of Celery tasks with nothing behind it: what is lost is lost."""

import os
import time

import redis

from bench.contenders.base import (
    DRAIN_POLL,
    DRAIN_SECONDS,
    ONE_SECONDS,
    Contender,
    wait_until,
)
from bench.contenders.gate import Gate
from bench.contenders.plain_app import QUEUE, links


class Plain(Contender):
    """The end of a run is the result of its last task."""

    def __init__(self) -> None:
        self._gate = Gate(os.environ["BENCH_REDIS_URL"], QUEUE)
        self._results = redis.Redis.from_url(os.environ["BENCH_RESULT_REDIS_URL"])
        self._runs = 0

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def ready(self) -> None:
        """One run through the worker."""
        self.one(steps=1)

    def fill(self, *, steps: int, runs: int) -> None:
        """Send the first links to where no worker looks; the others follow to the worker's own queue."""
        self._results.flushdb()
        self._runs = runs
        for _ in range(runs):
            links(steps).apply_async(queue=self._gate.name)

    def drain(self) -> float:
        """Every result is one key, and there are no others in that database."""
        started = time.perf_counter()
        self._gate.open()
        wait_until(
            lambda: int(self._results.dbsize()) >= self._runs,
            what="the plain chains",
            seconds=DRAIN_SECONDS,
            poll=DRAIN_POLL,
        )
        return time.perf_counter() - started

    def one(self, *, steps: int) -> float:
        """Wait for the result as the caller of a chain does."""
        started = time.perf_counter()
        links(steps).apply_async().get(timeout=ONE_SECONDS)
        return time.perf_counter() - started


def contender(_name: str) -> Contender:
    """The one of this module."""
    return Plain()
