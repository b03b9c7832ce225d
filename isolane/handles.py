"""The handles of one context: opened when they are asked for, handed out again, disposed of in reverse order.

Timing: opening takes as long as the far side does; each disposal has a time of its own, then it is abandoned.
Model: any thread may ask; one lock per definition and scope, so that different ones open at the same time. What is
eager is opened, and everything is disposed of, in helper threads that are waited for.
Guarantee: one handle per definition and scope, and another only when that one is known to be broken; each is disposed
of once, also what was opened too late; no secret of a grant is in an error.
Failure: what cannot be opened is a StepError, and is tried again when it is asked for again; a disposal that fails or
hangs stops no other, and is reported.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from isolane.protocol import Frame, Grant, Open, Resource, ResourceEvent
from isolane.providers.base import Provider
from isolane.results import Code, StepError
from isolane.tags import tag
from isolane.text import MESSAGE_MAX, storable

CALLBACK_SECONDS = 2.0  # for an on_close callback
EAGER_SECONDS = 10.0  # for all that is opened with the context; what takes longer goes on meanwhile

Emit = Callable[[Frame], None]
Find = Callable[[str], Provider[Any]]
Undo = Callable[[], str]  # returns what went wrong


class Hanging(TimeoutError):
    """It was not done in its time, and goes on in a thread that nobody waits for."""


class Teardown:
    """A stack of what has to be undone: the last one first, each once."""

    def __init__(self) -> None:
        # A finaliser or a signal handler may come back to it in the thread that holds it.
        self.lock = threading.RLock()
        self.done = False
        self._undos: list[Undo] = []
        self._pid = os.getpid()

    def push(self, undo: Undo) -> bool:
        """Have it called by `run`; says no when that is through."""
        with self.lock:
            if not self.done:
                self._undos.append(undo)
            return not self.done

    def run(self) -> tuple[str, ...]:
        """Undo everything, and what is added meanwhile; return what went wrong. Later calls do nothing."""
        errors: list[str] = []
        if os.getpid() != self._pid:  # what a forked child closes would be gone for its parent
            return ()
        while (undo := self._next()) is not None:
            try:
                error = undo()
            except BaseException as unexpected:  # noqa: BLE001 - none may stop the others
                error = f"{type(unexpected).__name__} in the teardown"
            if error:
                errors.append(error)
        return tuple(errors)

    def _next(self) -> Undo | None:
        with self.lock:
            if self._undos:
                return self._undos.pop()
            self.done = True
            return None


def settle(action: Callable[[], object], seconds: float) -> BaseException | None:
    """Do it in a thread and wait so long; return what it raised, or Hanging."""
    raised: list[BaseException] = []
    finished = threading.Event()

    def work() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - SystemExit, too, is only reported
            raised.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=work, name="isolane-dispose", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads: better without a limit than not at all
        work()
        return raised[0] if raised else None
    if not _wait(finished, time.monotonic() + seconds):
        return Hanging(f"not done within {seconds:g} s")
    thread.join()
    return raised[0] if raised else None


def call_back(callback: Callable[[], object]) -> str:
    """Call an on_close callback; return what went wrong, without its text: that may hold anything."""
    error = settle(callback, CALLBACK_SECONDS)
    if error is None:
        return ""
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return f"{type(error).__name__} in on_close callback {name}"


@dataclass(eq=False, kw_only=True)
class Handle:
    """What was opened of a resource; `steps` are those that it was handed to."""

    id: str
    name: str  # of the grant that it was opened by; the grant itself holds secrets
    type: str
    value: Any = field(repr=False)
    provider: Provider[Any] = field(repr=False)
    steps: set[str]
    disposed: bool = False


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.handle: Handle | None = None


class HandleScope:
    """The handles that end together: with an attempt of a step, or with the context."""

    def __init__(self) -> None:
        self.teardown = Teardown()
        self._slots: dict[tuple[str, str], _Slot] = {}

    def slot(self, grant: Grant) -> _Slot:
        """Return the place of this definition's handle."""
        with self.teardown.lock:
            return self._slots.setdefault((grant.type, grant.definition), _Slot())


class Handles:
    """The pool of one context; `emit` hears of all that becomes of its handles."""

    def __init__(self, opened: Open, *, emit: Emit, find: Find) -> None:
        self.scope = HandleScope()  # of the context itself
        self._execution_id = opened.execution_id
        self._tag = tag(
            tenant_id=opened.tenant_id, execution_id=opened.execution_id, epoch=opened.epoch
        )
        self._grants = {grant.name: grant for grant in opened.resources}
        self._emit = emit
        self._find = find
        self._errors: list[str] = []  # of attempts that are over
        self._pid = os.getpid()

    def open_eager(self) -> None:
        """Open what is eager; what fails is tried again when a step asks for it."""
        grants = [g for g in self._grants.values() if g.eager and g.scope == "execution"]
        deadline = time.monotonic() + EAGER_SECONDS
        for thread in [self._opening(grant.name) for grant in grants]:
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))

    def get(self, name: str, step: str, scope: HandleScope) -> Handle:
        """Return the handle of a declared resource for a step, whose attempt has this scope."""
        self._refuse_late(step, scope)
        grant = self._granted(name)
        holder = self.scope if grant.scope == "execution" else scope
        slot = holder.slot(grant)
        with slot.lock:
            if slot.handle is not None and slot.handle.provider.is_broken(slot.handle.value):
                # A step that is tried again would meet the same dead connection, time after time.
                self._errors += filter(None, [self._dispose(slot.handle, step)])
                slot.handle = None
            if slot.handle is None:
                slot.handle = self._open(grant, step, holder)
            handle = slot.handle
            if step not in handle.steps:
                handle.steps.add(step)
                self._say("reused", name, handle.id, step)
        return handle

    def check(self, handle: Handle) -> dict[str, Any]:
        """Ask the far side for a sign of life, or raise a StepError."""
        try:
            return handle.provider.check(handle.value)
        except StepError as error:
            failure = StepError(error.code, self._redacted(error.message))
        except Exception as error:  # noqa: BLE001 - drivers have errors of their own
            failure = _failure(handle.name, handle.type, f"does not answer: {self._reason(error)}")
        raise failure  # out here it drags along no text of the driver's

    def end(self, scope: HandleScope) -> None:
        """Dispose of what an attempt opened for itself."""
        self._errors += scope.teardown.run()

    def close(self) -> tuple[str, ...]:
        """Dispose of everything; return what went wrong since the context was opened."""
        errors = (*self._errors, *self.scope.teardown.run())
        self._errors = []
        self._grants = {}  # their secrets are kept no longer than they are needed
        return errors

    def _opening(self, name: str) -> threading.Thread | None:
        thread = threading.Thread(target=self._try, args=(name,), name="isolane-open", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads: it is opened when a step asks for it
            return None
        return thread

    def _try(self, name: str) -> None:
        with contextlib.suppress(StepError, RuntimeError):  # said already, in a frame
            self.get(name, "", self.scope)

    def _refuse_late(self, step: str, scope: HandleScope) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("a forked process has no resources: ask in the step's own process")
        if self.scope.teardown.done:
            raise RuntimeError(f"the context of {self._execution_id} is closed")
        if scope.teardown.done:
            raise RuntimeError(f"this attempt of step {step} is over, and its resources with it")

    def _granted(self, name: str) -> Grant:
        if not isinstance(name, str):
            raise TypeError(f"a resource's name is a str, not {type(name).__name__}")
        if (grant := self._grants.get(name)) is None:
            declared = ", ".join(sorted(self._grants)) or "none"
            message = (
                f"resource {name[:64]!r} is not declared by this run; declared are: {declared}"
            )
            raise StepError(Code.POLICY_VIOLATION, message)
        return grant

    def _open(self, grant: Grant, step: str, holder: HandleScope) -> Handle:
        handle_id = f"{grant.type}_{uuid4().hex}"
        try:
            provider = self._find(grant.type)
            value = provider.create(grant, self._tag)
        except BaseException as error:  # noqa: BLE001 - a driver's SystemExit is a failure as well
            reason = self._reason(error)
        else:
            handle = Handle(
                id=handle_id,
                name=grant.name,
                type=grant.type,
                value=value,
                provider=provider,
                steps={step},
            )
            self._keep(handle, step, holder)
            return handle
        self._say("failed", grant.name, handle_id, step, reason)
        raise _failure(grant.name, grant.type, f"cannot be opened: {reason}")

    def _keep(self, handle: Handle, step: str, holder: HandleScope) -> None:
        ends_in = step if holder is not self.scope else ""
        with holder.teardown.lock:  # nobody disposes of it before it is said to be there
            if holder.teardown.push(partial(self._dispose, handle, ends_in)):
                self._say("allocated", handle.name, handle.id, step)
                return
        settle(partial(handle.provider.dispose, handle.value), handle.provider.dispose_s)
        reason = "what asked for it was over before it was open"
        self._say("failed", handle.name, handle.id, step, reason)
        raise RuntimeError(f"resource {handle.name}: {reason}")

    def _dispose(self, handle: Handle, step: str) -> str:
        if handle.disposed:
            return ""
        handle.disposed = True
        error = settle(partial(handle.provider.dispose, handle.value), handle.provider.dispose_s)
        reason = "" if error is None else self._reason(error)
        self._say("disposed", handle.name, handle.id, step, reason)
        if not reason:
            return ""
        return f"resource {handle.name} of type {handle.type} was not closed: {reason}"

    def _say(
        self, event: ResourceEvent, name: str, handle_id: str, step: str, error: str = ""
    ) -> None:
        frame = Resource(event=event, name=name, resource_id=handle_id, step=step, error=error)
        with self.scope.teardown.lock:
            # Of a thread that comes later nobody hears: the stream may be another execution's.
            if not self.scope.teardown.done:
                self._emit(frame)

    def _reason(self, error: BaseException) -> str:
        try:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
        except Exception:  # noqa: BLE001 - its text is made by code of others
            text = type(error).__name__
        # Cut last: half a secret would not be found.
        return storable(" ".join(self._redacted(text).split()), MESSAGE_MAX)

    def _redacted(self, text: str) -> str:
        secrets = {value for grant in self._grants.values() for value in grant.secrets.values()}
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def _failure(name: str, kind: str, what: str) -> StepError:
    return StepError(Code.RESOURCE_ERROR, f"resource {name} of type {kind} {what}")


def _wait(finished: threading.Event, deadline: float) -> bool:
    while not finished.is_set() and (left := deadline - time.monotonic()) > 0:
        # A signal handler that a step left may raise here; the disposal goes on nevertheless.
        with contextlib.suppress(BaseException):
            finished.wait(left)
    return finished.is_set()
