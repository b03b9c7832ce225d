"""The context of a placed run, and the view that its steps get of it."""

import math
import random
import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, get_args

from isolane.handles import Emit, Find, Handle, Handles, HandleScope, call_back
from isolane.memory import Memory
from isolane.protocol import COSTS_MAX, Cost, Frame, Level, Log, Open, Progress, Run
from isolane.providers.registry import provider_of
from isolane.results import PAUSE_MAX_S
from isolane.text import LINE_MAX, MESSAGE_MAX, storable

_LEVELS = get_args(Level)


def _discard(_frame: Frame) -> None:
    """Drop the frame: for contexts without a listener."""


class Identity(NamedTuple):
    """The identity of a context: its execution, tenant and user."""

    execution_id: str
    tenant_id: str
    user_id: str
    request_id: str
    epoch: int


class ExecutionContext:
    """The context of one placement of one execution, from OPEN to CLOSE."""

    def __init__(self, opened: Open, emit: Emit = _discard, *, find: Find = provider_of) -> None:
        self._identity = Identity(
            execution_id=opened.execution_id,
            tenant_id=opened.tenant_id,
            user_id=opened.user_id,
            request_id=opened.request_id,
            epoch=opened.epoch,
        )
        self._handles = Handles(opened, emit=emit, find=find)
        self._cancelled = threading.Event()

    @property
    def identity(self) -> Identity:
        """The identity of the context; it never changes."""
        return self._identity

    @property
    def cancelled(self) -> bool:
        """True if the execution was asked to stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Note that the execution should stop; safe from any thread."""
        self._cancelled.set()

    @property
    def handles(self) -> Handles:
        """The handles of its resources."""
        return self._handles

    def on_close(self, callback: Callable[[], object]) -> None:
        """Run a callback once when the context closes, the last one first; handles are in the same order."""
        if not self._handles.context_scope.teardown.push(partial(call_back, callback)):
            raise RuntimeError(f"the context of {self._identity.execution_id} is closed")

    def close(self) -> tuple[str, ...]:
        """Run the callbacks and dispose of the handles; return the errors. Closing again does nothing."""
        return self._handles.close()


class NodeContext:
    """The view that one attempt of one step has of its run."""

    def __init__(
        self,
        execution: ExecutionContext,
        run: Run,
        *,
        deadline: float,
        emit: Callable[[Frame], None],
    ) -> None:
        identity = execution.identity
        self.execution_id = identity.execution_id
        self.tenant_id = identity.tenant_id
        self.user_id = identity.user_id  # who submitted the run
        self.request_id = identity.request_id
        self.epoch = identity.epoch
        self.step = run.step
        self.attempt = run.attempt
        self.idempotency_key = run.idempotency_key
        self.deadline = deadline  # by time.monotonic()
        self.memory = Memory(run.variables)
        self._seed = run.seed
        self._nonce = run.nonce
        self._execution = execution
        self._attempt_scope = HandleScope()
        self._emit = emit
        self._costs = 0
        self._pause_s = 0.0
        self._question = ""

    @cached_property
    def random(self) -> random.Random:
        """Random numbers that repeat when the run is repeated with the same seed."""
        return random.Random(self._seed)  # noqa: S311 - must repeat, not be secret

    @property
    def cancelled(self) -> bool:
        """True if the step should stop; it is killed a second later."""
        return self._execution.cancelled

    @property
    def attempt_scope(self) -> HandleScope:
        """The handles that end with this attempt."""
        return self._attempt_scope

    @property
    def pause_s(self) -> float:
        """The seconds that the run will wait after this step."""
        return self._pause_s

    @property
    def question(self) -> str:
        """The question to a person after this step; empty if there is none."""
        return self._question

    def resource(self, name: str) -> Any:
        """Return the handle of a resource that the blueprint declares; opened on first use.

        By its scope, all steps of the run share it, or it is this attempt's own; the platform closes it.
        """
        return self._handle(name).value

    def resource_id(self, name: str) -> str:
        """Return the id of the handle in the run's resource records."""
        return self._handle(name).id

    def check_resource(self, name: str) -> dict[str, Any]:
        """Ask the remote server of a resource for a sign of life; return its answer about this connection."""
        return self._execution.handles.check(self._handle(name))

    def log(self, message: str, level: Level = "info") -> None:
        """Write one line to the step's log."""
        if level not in _LEVELS:
            raise ValueError(f"level {level!r} is not one of {', '.join(_LEVELS)}")
        text = storable(_text("message", message), LINE_MAX)
        self._emit(Log(step=self.step, level=level, message=text, nonce=self._nonce))

    def progress(self, fraction: float, message: str = "") -> None:
        """Report how far the step is, from 0 to 1."""
        text = storable(_text("message", message), MESSAGE_MAX)
        # A sum of fractions may end a little above 1; that must not fail a step.
        bounded = min(max(_number("fraction", fraction), 0.0), 1.0)
        frame = Progress(step=self.step, fraction=bounded, message=text, nonce=self._nonce)
        self._emit(frame)

    def cost(self, kind: str, amount: float) -> None:
        """Report the use of something that is paid for, as in `("tokens", 812)`."""
        cost = Cost(
            step=self.step,
            kind=_text("kind", kind),
            amount=_number("amount", amount),
            nonce=self._nonce,
        )
        if self._costs >= COSTS_MAX:
            raise ValueError(
                f"a step may report costs {COSTS_MAX} times at most; add them up before"
            )
        self._costs += 1
        self._emit(cost)

    def pause(self, seconds: float) -> None:
        """Let the run wait after this step, without a slot; the last call counts."""
        pause_s = _number("seconds", seconds)
        if not 0 <= pause_s <= PAUSE_MAX_S:
            raise ValueError(f"seconds {seconds!r} is not between 0 and {PAUSE_MAX_S:.0f}")
        if self._question:
            raise ValueError("the step asks a person; it cannot pause, too")
        self._pause_s = pause_s

    def ask(self, question: str, expires_s: float) -> None:
        """Ask a person to approve or reject after this step, without a slot; the answer is its output."""
        if not _text("question", question).strip():
            raise ValueError("the question is empty")
        if len(question) > MESSAGE_MAX:
            raise ValueError(
                f"a question of {len(question)} characters is over the limit of {MESSAGE_MAX}"
            )
        pause_s = _number("expires_s", expires_s)
        if not 0 < pause_s <= PAUSE_MAX_S:
            raise ValueError(f"expires_s {expires_s!r} is not between 0 and {PAUSE_MAX_S:.0f}")
        self._question, self._pause_s = storable(question, MESSAGE_MAX), pause_s

    def on_close(self, callback: Callable[[], object]) -> None:
        """Run a callback when this run's context closes, the last one first."""
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        self._execution.on_close(callback)

    def _handle(self, name: str) -> Handle:
        return self._execution.handles.get(name, self.step, self._attempt_scope)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} {value!r} is not finite")
    return float(value)
