"""What a run owns while it is placed, and what its steps see of it."""

import random
import threading
from collections.abc import Callable
from typing import NamedTuple

from isolane.protocol import Frame, Level, Log, Open, Progress, Run
from isolane.text import LINE_MAX, MESSAGE_MAX, storable


class Identity(NamedTuple):
    """Whose context it is."""

    execution_id: str
    tenant_id: str
    epoch: int


class ExecutionContext:
    """The context of one placement of one execution, from OPEN to CLOSE."""

    def __init__(self, opened: Open) -> None:
        self._identity = Identity(opened.execution_id, opened.tenant_id, opened.epoch)
        self._callbacks: list[Callable[[], object]] = []
        self._cancelled = threading.Event()
        self._closed = False

    @property
    def identity(self) -> Identity:
        """Whose context it is; never changes."""
        return self._identity

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the execution to stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Note that the execution should stop; safe from any thread."""
        self._cancelled.set()

    def on_close(self, callback: Callable[[], object]) -> None:
        """Have a callback run once when the context closes, the last one first."""
        if self._closed:
            raise RuntimeError(f"the context of {self._identity.execution_id} is closed")
        self._callbacks.append(callback)

    def close(self) -> tuple[str, ...]:
        """Run the callbacks; return what went wrong. Closing again does nothing."""
        errors = []
        while self._callbacks:
            callback = self._callbacks.pop()
            try:
                callback()
            except BaseException as error:  # noqa: BLE001 - none may stop the others
                name = getattr(callback, "__qualname__", type(callback).__name__)
                errors.append(f"{type(error).__name__} in on_close callback {name}")
        self._closed = True
        return tuple(errors)


class NodeContext:
    """What one attempt of one step sees of its run."""

    def __init__(
        self,
        execution: ExecutionContext,
        run: Run,
        *,
        deadline: float,
        emit: Callable[[Frame], None],
    ) -> None:
        self.execution_id, self.tenant_id, self.epoch = execution.identity
        self.step = run.step
        self.attempt = run.attempt
        self.idempotency_key = run.idempotency_key
        self.random = random.Random(run.seed)  # noqa: S311 - must repeat, not be secret
        self.deadline = deadline  # by time.monotonic()
        self._execution = execution
        self._emit = emit

    @property
    def cancelled(self) -> bool:
        """Whether the step should stop; it is killed a second later."""
        return self._execution.cancelled

    def log(self, message: str, level: Level = "info") -> None:
        """Write one line to the step's log."""
        self._emit(Log(step=self.step, level=level, message=storable(message, LINE_MAX)))

    def progress(self, fraction: float, message: str = "") -> None:
        """Report how far the step is, from 0 to 1."""
        text = storable(message, MESSAGE_MAX)
        # Sums of fractions end a little above 1 at times; that must not fail a step.
        bounded = min(max(fraction, 0.0), 1.0)
        self._emit(Progress(step=self.step, fraction=bounded, message=text))

    def on_close(self, callback: Callable[[], object]) -> None:
        """Have a callback run when this run's context closes, the last one first."""
        self._execution.on_close(callback)
