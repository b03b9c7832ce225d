"""`python -m tests.acceptance.survival.worker …`: a real worker to which something happens at an exact point.

FAULT names the point, FAULT_COUNT how many links must have come to it before it happens: then all of them are there.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import django

FAULT = os.environ["FAULT"]
COUNT = int(os.environ.get("FAULT_COUNT", "1"))
FIRST = "s1"


class Point:
    """A point where links wait for each other; the worker dies there when all have arrived."""

    def __init__(self) -> None:
        self._arrived = 0
        self._lock = threading.Lock()

    def reached(self) -> None:
        """One more is here; it goes no further."""
        with self._lock:
            self._arrived += 1
            if self._arrived == COUNT:
                os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


class Stop:
    """A point where the whole process is stopped, once, until the test continues it."""

    def __init__(self) -> None:
        self._done = False

    def reached(self) -> None:
        """Stop."""
        if not self._done:
            self._done = True
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.5)  # this thread may be a little ahead of the others


def _before(owner: Any, name: str, strike: Callable[[], None], when: Callable[..., bool]) -> None:
    real = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        if when(*args, **kwargs):
            strike()
        return real(*args, **kwargs)

    setattr(owner, name, patched)


def _after(owner: Any, name: str, strike: Callable[[], None], when: Callable[..., bool]) -> None:
    real = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        if when(*args, **kwargs):
            strike()
        return result

    setattr(owner, name, patched)


def _plant() -> None:
    from executions.semantics.attempt_output import AttemptOutput
    from executions.worker.links import claiming, closing, runner, step_runner
    from resources.runtimes.forked_runtime import ForkedRuntime
    from resources.runtimes.supervision import Supervision

    kill, stop = Point().reached, Stop().reached
    faults: dict[str, Callable[[], None]] = {
        "before the claim": lambda: _before(claiming, "claim_step", kill, _first_claim),
        "after the claim": lambda: _after(claiming, "claim_step", kill, _first_claim),
        "in the middle of the effect": lambda: _before(AttemptOutput, "add", kill, _always),
        "after the effect": lambda: _before(
            step_runner, "write_checkpoint", kill, _first_checkpoint
        ),
        "after the checkpoint": lambda: _after(
            step_runner, "write_checkpoint", kill, _first_checkpoint
        ),
        "before the next link is published": lambda: _after(
            runner.LinkRunner, "run", kill, _first_link
        ),
        "before the close": lambda: _before(runner, "close_context", kill, _always),
        "after the teardown": lambda: _before(closing, "close_execution", kill, _always),
        "in the closing transaction": lambda: _close_in_a_transaction(closing, kill),
        "answers lost": _lose_answers,
        "stopped before OPEN": lambda: _before(ForkedRuntime, "open", stop, _always),
        "stopped before RUN": lambda: _before(Supervision, "_send", stop, _always),
        "messages": _mishandle_messages,
        "cancels": lambda: _cancel(claiming, runner, step_runner),
    }
    faults[FAULT]()


def _always(*_: Any, **__: Any) -> bool:
    return True


def _first_claim(_placement: Any, path: str, **_: Any) -> bool:
    return path == FIRST


def _first_checkpoint(_placement: Any, record: Any, *_: Any, **__: Any) -> bool:
    return bool(record.path == FIRST)


def _first_link(_links: Any, _task: str, path: str, *_: Any) -> bool:
    return path == FIRST


def _close_in_a_transaction(closing: Any, kill: Callable[[], None]) -> None:
    from django.db import transaction

    real = closing.close_execution

    def patched(*args: Any, **kwargs: Any) -> Any:
        with transaction.atomic():
            real(*args, **kwargs)
            kill()

    closing.close_execution = patched


def _lose_answers() -> None:
    """Of every run: the answer to its first claim, its first checkpoint and its close, all written."""
    from django.db import OperationalError

    from tenants import statement

    real = statement._fetch_row
    lost: set[tuple[str, Any]] = set()
    kinds = {name: name for name in ("claim", "checkpoint", "close")} | {
        "close_and_settle": "close"
    }

    def fetch(connection: Any, asked: Any, parameters: Any) -> Any:
        row = real(connection, asked, parameters)
        kind = kinds.get(asked.name)
        if row is None or kind is None or (kind, parameters["execution"]) in lost:
            return row
        lost.add((kind, parameters["execution"]))
        connection.connection.close()
        raise OperationalError("the answer was lost")

    statement._fetch_row = fetch  # type: ignore[assignment]  # planted


def _mishandle_messages() -> None:
    """The first message of a link `lost…` never arrives; every other one arrives twice."""
    from orchestrator.broker import LaneChannel

    real = LaneChannel._put
    lost: set[str] = set()

    def put(self: Any, queue: str, message: Any, **kwargs: Any) -> None:
        shown = message.get("headers", {}).get("argsrepr", "")
        if "'lost" in shown and shown not in lost:
            lost.add(shown)
            return
        real(self, queue, message, **kwargs)
        if queue.startswith("lane."):
            real(self, queue, message, **kwargs)

    LaneChannel._put = put  # type: ignore[method-assign]  # planted


def _cancel(claiming: Any, runner: Any, step_runner: Any) -> None:
    """Somebody cancels at a moment that the step's name says."""
    from executions.placement.run_scope import run_scope
    from executions.submission.cancel import request_cancel

    def cancel(placement: Any) -> None:
        with run_scope(placement.tenant_id):
            request_cancel(placement.execution_id, actor="somebody")

    claim, run, write = claiming.claim_step, runner.LinkRunner.run, step_runner.write_checkpoint

    def claim_step(placement: Any, path: str, **options: Any) -> Any:
        if path == "before_claim":
            cancel(placement)
        claimed = claim(placement, path, **options)
        if path == "after_claim":
            cancel(placement)
        return claimed

    def run_link(self: Any, task_id: str, path: str, rest: Any) -> Any:
        placement = self._notes[runner._delivery(task_id)].placement
        following = run(self, task_id, path, rest)
        if path == "between":
            cancel(placement)
        return following

    def write_checkpoint(placement: Any, record: Any, *args: Any, **options: Any) -> Any:
        if record.path == "ahead":
            cancel(placement)
        return write(placement, record, *args, **options)

    claiming.claim_step, runner.LinkRunner.run, step_runner.write_checkpoint = (
        claim_step,
        run_link,
        write_checkpoint,
    )


def main() -> None:
    """Run a worker."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    django.setup()
    _plant()
    from celery.__main__ import main as celery

    sys.argv = ["celery", *sys.argv[1:]]
    celery()


if __name__ == "__main__":
    main()
