"""A tenant at work: a few cheap requests per second, and a small run every two seconds.

Timing: for the given seconds, then until its runs have ended or a time limit is reached.
Model: async, in a process of its own, so that it does not measure an attacker's event loop.
Guarantee: best-effort; nothing is retried.
Failure: a request without a good answer is counted by its status or error.
"""

import asyncio
import itertools
import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from trials.siege.http import Call, Client, NoAnswer, once

PATHS = ("/api/v1/blueprints", "/api/v1/blueprints/small", "/api/v1/executions?page_size=5")
RUNS = "/api/v1/executions"
# Each over a connection of its own, even if the one before is unanswered.
FRESH_PER_SECOND = 8.0
KEPT = 2  # connections that are kept open
KEPT_PER_SECOND = 4.0  # over each of them
RUN_EVERY_SECONDS = 2.0
POLL_SECONDS = 0.5
ANSWER_SECONDS = 15.0
RUN_SECONDS = 30.0  # limit of one run
SUBMISSION = json.dumps({"blueprint": "small", "inputs": {}}).encode()
ENDED = frozenset({"succeeded", "failed", "cancelled", "timed_out"})


@dataclass(kw_only=True)
class VictimFigures:
    """Latencies, failures and runs of the tenant."""

    latencies_ms: list[float] = field(default_factory=list)  # of GETs, failed ones included
    failures: Counter[str] = field(default_factory=Counter)
    submitted: int = 0
    runs: Counter[str] = field(default_factory=Counter)  # by state
    run_seconds: list[float] = field(default_factory=list)


class Victim:
    """The client of one tenant."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._headers = {
            "Host": "localhost",
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
        }
        self.figures = VictimFigures()

    async def work(self, seconds: float) -> VictimFigures:
        """Send at a steady rate, whatever the answers."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fresh(seconds, group))
            for _ in range(KEPT):
                group.create_task(self._kept(seconds))
            group.create_task(self._runs(seconds, group))
        return self.figures

    async def _fresh(self, seconds: float, group: asyncio.TaskGroup) -> None:
        paths = itertools.cycle(PATHS)
        async for _ in ticks(FRESH_PER_SECOND, seconds):
            group.create_task(self._get(next(paths)))

    async def _kept(self, seconds: float) -> None:
        paths, client = itertools.cycle(PATHS), Client(self._port)
        async for _ in ticks(KEPT_PER_SECOND, seconds):
            await self._get(next(paths), client)
        client.close()

    async def _runs(self, seconds: float, group: asyncio.TaskGroup) -> None:
        async for _ in ticks(1 / RUN_EVERY_SECONDS, seconds):
            group.create_task(self._run())

    async def _get(self, path: str, client: Client | None = None) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._ask(Call(method="GET", path=path, headers=self._headers), client)
        self.figures.latencies_ms.append(round((loop.time() - began) * 1000, 2))

    async def _run(self) -> None:
        """Submit a run and poll it until it has ended."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        run = await self._ask(
            Call(method="POST", path=RUNS, headers=self._headers, body=SUBMISSION)
        )
        if run is None:
            return
        self.figures.submitted += 1
        look, state = Call(method="GET", path=f"{RUNS}/{run['id']}", headers=self._headers), "open"
        while state not in ENDED and loop.time() - began < RUN_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            shown = await self._ask(look)
            state = shown["state"] if shown else state
        self.figures.runs[state] += 1
        self.figures.run_seconds.append(loop.time() - began)

    async def _ask(self, call: Call, client: Client | None = None) -> dict[str, Any] | None:
        """Return the document of a good answer, else None."""
        try:
            if client is None:
                answer = await once(self._port, call, ANSWER_SECONDS)
            else:
                answer = await client.send(call, ANSWER_SECONDS)
        except NoAnswer as error:
            self.figures.failures[str(error)] += 1
            return None
        if not 200 <= answer.status < 300:
            self.figures.failures[str(answer.status)] += 1
            return None
        document: dict[str, Any] = json.loads(answer.body)
        return document


async def ticks(rate: float, seconds: float) -> AsyncIterator[int]:
    """Tick at a steady rate; missed ticks are left out."""
    loop = asyncio.get_running_loop()
    began, number = loop.time(), 0
    while number < seconds * rate:
        await asyncio.sleep(max(0.0, began + number / rate - loop.time()))
        yield number
        number = max(number + 1, math.ceil((loop.time() - began) * rate))
