"""The event loop of all gates of this worker, in a thread of its own that starts with the first of them.

Timing: a call that is submitted returns at once.
Model: sync-over-async, one event loop in a thread; each gate has a bounded share of what it reads at once.
Guarantee: an error of one gate ends that gate and no other.
Failure: an error that no gate has caught is logged.
"""

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

LOOK_SECONDS = 1.0  # between two looks for connections that are idle
_making = threading.Lock()
logger = logging.getLogger(__name__)

R = TypeVar("R")


class Swept(Protocol):
    """Something with connections that may have been idle for too long."""

    def sweep(self) -> None:
        """End those."""


class GateLoop:
    """The thread and its loop."""

    def __init__(self) -> None:
        self.gates: set[Swept] = set()  # for the loop's thread only
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log)
        threading.Thread(target=self._run, name="isolane-gate", daemon=True).start()

    def submit(self, work: Coroutine[Any, Any, R]) -> "Future[R]":
        """Run a coroutine there, from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, action: Callable[[], object]) -> None:
        """Call a function there."""
        self._loop.call_soon_threadsafe(action)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_later(LOOK_SECONDS, self._sweep)
        self._loop.run_forever()

    def _sweep(self) -> None:
        self._loop.call_later(LOOK_SECONDS, self._sweep)
        for gate in list(self.gates):
            try:
                gate.sweep()
            except Exception:
                logger.exception("a gate was not swept", extra={"event": "GATE_ERROR"})


@functools.cache
def _only_loop() -> GateLoop:
    return GateLoop()


def gate_loop() -> GateLoop:
    """Return the loop of this process, from any thread."""
    with _making:  # a cache alone lets two threads make two
        return _only_loop()


def _log(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    logger.error("gate: %s", context.get("message"), exc_info=error, extra={"event": "GATE_ERROR"})
