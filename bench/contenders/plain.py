"""A chain of Celery tasks without any durability."""

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
    """A contender whose runs end with the result of their last task."""

    def __init__(self) -> None:
        self._gate = Gate(os.environ["BENCH_REDIS_URL"], QUEUE)
        self._results = redis.Redis.from_url(os.environ["BENCH_RESULT_REDIS_URL"])
        self._runs = 0

    def prepare(self) -> None:
        """Do nothing."""

    def ready(self) -> None:
        """Run once."""
        self.one(steps=1)

    def fill(self, *, steps: int, runs: int) -> None:
        """Send the first links to the gate; the others will follow to the worker's own queue."""
        self._results.flushdb()
        self._runs = runs
        for _ in range(runs):
            links(steps).apply_async(queue=self._gate.name)

    def drain(self) -> float:
        """Wait for the results: each is one key, and that database has no others."""
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
        """Run a chain and wait for its result as a caller does."""
        started = time.perf_counter()
        links(steps).apply_async().get(timeout=ONE_SECONDS)
        return time.perf_counter() - started


def contender(_name: str) -> Contender:
    """Return the contender of this module."""
    return Plain()
