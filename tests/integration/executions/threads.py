"""Work in other threads, each with a database connection of its own that is closed again."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")
SECONDS = 30


def in_thread(work: Callable[[], Result]) -> "Future[Result]":
    """Start the work; the future holds its result or its error."""
    future: Future[Result] = Future()

    def target() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised again when the result is read
            connection.close()
            future.set_exception(error)
        else:
            connection.close()
            future.set_result(result)

    threading.Thread(target=target, daemon=True).start()
    return future


def at_once(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Start all works at the same moment; their results, in their order."""
    barrier = threading.Barrier(len(works))

    def waiting(work: Callable[[], Result]) -> Callable[[], Result]:
        def start() -> Result:
            barrier.wait(timeout=SECONDS)
            return work()

        return start

    futures = [in_thread(waiting(work)) for work in works]
    return [future.result(timeout=SECONDS) for future in futures]
