"""The handles of one context: opened on first use, shared, disposed of in reverse order.

A new handle takes the place of one that is known to be broken. A handle that was opened too late is disposed of, too;
one that could not be opened is tried again on the next request.

Timing: opening takes as long as the remote server does; a disposal is abandoned after its own timeout.
Model: any thread may ask; one lock per definition and scope; helper threads open eagerly and dispose.
Guarantee: one working handle per definition and scope, disposed of once; no error contains a secret.
Failure: StepError if it cannot be opened; a disposal that fails or hangs is reported and stops no other.
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
EAGER_SECONDS = (
    10.0  # for all eager handles together; those that take longer go on in the background
)

Emit = Callable[[Frame], None]
Find = Callable[[str], Provider[Any]]
Undo = Callable[[], str]  # returns the error, empty if there was none


class Hanging(TimeoutError):
    """A call did not end within its timeout, and goes on in a thread that is no longer waited for."""


class Teardown:
    """A stack of undo calls: the last one first, each once."""

    def __init__(self) -> None:
        # Reentrant: a finaliser or a signal handler may run in the thread that holds it.
        self.lock = threading.RLock()
        self.done = False
        self._undos: list[Undo] = []
        self._pid = os.getpid()

    def push(self, undo: Undo) -> bool:
        """Add a call for `run`; false if `run` is done."""
        with self.lock:
            if not self.done:
                self._undos.append(undo)
            return not self.done

    def run(self) -> tuple[str, ...]:
        """Call all of them, and those added meanwhile; return the errors. Later calls do nothing."""
        errors: list[str] = []
        if os.getpid() != self._pid:  # a forked child would close its parent's handles
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


def run_within(action: Callable[[], object], seconds: float) -> BaseException | None:
    """Call the action in a thread and wait that long; return the exception that it raised, or Hanging."""
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
    except RuntimeError:  # no more threads: better without a timeout than not at all
        work()
        return raised[0] if raised else None
    if not _wait(finished, time.monotonic() + seconds):
        return Hanging(f"not done within {seconds:g} s")
    thread.join()
    return raised[0] if raised else None


def call_back(callback: Callable[[], object]) -> str:
    """Call an on_close callback; return the error without its text, which may contain anything."""
    error = run_within(callback, CALLBACK_SECONDS)
    if error is None:
        return ""
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return f"{type(error).__name__} in on_close callback {name}"


@dataclass(eq=False, kw_only=True)
class Handle:
    """An open handle of a resource; `steps` are those that use it."""

    id: str
    name: str  # of its grant; the grant itself contains secrets, and is not kept
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
    """The handles that end together: those of one attempt of a step, or of the context."""

    def __init__(self) -> None:
        self.teardown = Teardown()
        self._slots: dict[tuple[str, str], _Slot] = {}

    def slot(self, grant: Grant) -> _Slot:
        """Return the slot of this definition's handle."""
        with self.teardown.lock:
            return self._slots.setdefault((grant.type, grant.definition), _Slot())


class Handles:
    """The handles of one context; `emit` gets a frame for every event of a handle."""

    def __init__(self, opened: Open, *, emit: Emit, find: Find) -> None:
        self.context_scope = HandleScope()
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
        """Open the eager handles; one that fails is tried again when a step asks for it."""
        grants = [g for g in self._grants.values() if g.eager and g.scope == "execution"]
        deadline = time.monotonic() + EAGER_SECONDS
        for thread in [self._opening(grant.name) for grant in grants]:
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))

    def get(self, name: str, step: str, attempt_scope: HandleScope) -> Handle:
        """Return the handle of a declared resource, for an attempt of a step."""
        self._refuse_late(step, attempt_scope)
        grant = self._granted(name)
        scope = self.context_scope if grant.scope == "execution" else attempt_scope
        slot = scope.slot(grant)
        with slot.lock:
            if slot.handle is not None and slot.handle.provider.is_broken(slot.handle.value):
                # A retried step would get the same dead connection again and again.
                self._errors += filter(None, [self._dispose(slot.handle, step)])
                slot.handle = None
            if slot.handle is None:
                slot.handle = self._open(grant, step, scope)
            handle = slot.handle
            if step not in handle.steps:
                handle.steps.add(step)
                self._report("reused", name, handle.id, step)
        return handle

    def check(self, handle: Handle) -> dict[str, Any]:
        """Ask the remote server for a sign of life, or raise a StepError."""
        try:
            return handle.provider.check(handle.value)
        except StepError as error:
            failure = StepError(error.code, self._redacted(error.message))
        except Exception as error:  # noqa: BLE001 - drivers have errors of their own
            failure = _failure(handle.name, handle.type, f"does not answer: {self._reason(error)}")
        raise failure  # out here, without the driver's exception as its context

    def end(self, scope: HandleScope) -> None:
        """Dispose of the handles of an attempt."""
        self._errors += scope.teardown.run()

    def close(self) -> tuple[str, ...]:
        """Dispose of all handles; return the errors since the context was opened."""
        errors = (*self._errors, *self.context_scope.teardown.run())
        self._errors = []
        self._grants = {}  # their secrets are no longer needed
        return errors

    def _opening(self, name: str) -> threading.Thread | None:
        thread = threading.Thread(target=self._try, args=(name,), name="isolane-open", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads: it is opened when a step asks for it
            return None
        return thread

    def _try(self, name: str) -> None:
        with contextlib.suppress(StepError, RuntimeError):  # reported already, in a frame
            self.get(name, "", self.context_scope)

    def _refuse_late(self, step: str, attempt_scope: HandleScope) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("a forked process has no resources: ask in the step's own process")
        if self.context_scope.teardown.done:
            raise RuntimeError(f"the context of {self._execution_id} is closed")
        if attempt_scope.teardown.done:
            raise RuntimeError(f"this attempt of step {step} is over, and its resources with it")

    def _granted(self, name: str) -> Grant:
        if not isinstance(name, str):
            raise TypeError(f"a resource's name must be a str, not {type(name).__name__}")
        if (grant := self._grants.get(name)) is None:
            declared = ", ".join(sorted(self._grants)) or "none"
            message = (
                f"resource {name[:64]!r} is not declared by this run; declared are: {declared}"
            )
            raise StepError(Code.POLICY_VIOLATION, message)
        return grant

    def _open(self, grant: Grant, step: str, scope: HandleScope) -> Handle:
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
            self._keep(handle, step, scope)
            return handle
        self._report("failed", grant.name, handle_id, step, reason)
        raise _failure(grant.name, grant.type, f"cannot be opened: {reason}")

    def _keep(self, handle: Handle, step: str, scope: HandleScope) -> None:
        ends_in = step if scope is not self.context_scope else ""
        with scope.teardown.lock:  # it is reported before it can be disposed of
            if scope.teardown.push(partial(self._dispose, handle, ends_in)):
                self._report("allocated", handle.name, handle.id, step)
                return
        run_within(partial(handle.provider.dispose, handle.value), handle.provider.dispose_s)
        reason = "the attempt or context was over before it was open"
        self._report("failed", handle.name, handle.id, step, reason)
        raise RuntimeError(f"resource {handle.name}: {reason}")

    def _dispose(self, handle: Handle, step: str) -> str:
        if handle.disposed:
            return ""
        handle.disposed = True
        error = run_within(
            partial(handle.provider.dispose, handle.value), handle.provider.dispose_s
        )
        reason = "" if error is None else self._reason(error)
        self._report("disposed", handle.name, handle.id, step, reason)
        if not reason:
            return ""
        return f"resource {handle.name} of type {handle.type} was not closed: {reason}"

    def _report(
        self, event: ResourceEvent, name: str, handle_id: str, step: str, error: str = ""
    ) -> None:
        frame = Resource(event=event, name=name, resource_id=handle_id, step=step, error=error)
        with self.context_scope.teardown.lock:
            # A late thread reports nothing: the stream may serve another execution by now.
            if not self.context_scope.teardown.done:
                self._emit(frame)

    def _reason(self, error: BaseException) -> str:
        try:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
        except Exception:  # noqa: BLE001 - its text is made by foreign code
            text = type(error).__name__
        # Redacted before it is cut: half a secret would not be found.
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
        # A signal handler that a step left may raise here; the wait goes on nevertheless.
        with contextlib.suppress(BaseException):
            finished.wait(left)
    return finished.is_set()
