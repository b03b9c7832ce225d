"""A runtime in a forked runner: the part that `shared` and `process` have in common.

Timing: opening does not wait for the answer if nothing is opened eagerly; that comes before the first result.
Model: one thread uses it; `kill` and `alive` are safe from any.
Guarantee: a clean teardown means that all handles are reported closed.
Failure: the runner is given back in any case, as not clean if anything went wrong.
"""

import contextlib
import threading
from abc import abstractmethod
from collections.abc import Sequence

from isolane.limits import RunLimits, Usage
from isolane.protocol import Close, Closed, Grant, Open, Ready, Resource, Run
from isolane.results import StepResult
from resources.placement import Placement
from resources.runtimes.base import OnFrame, OnResource, RunIdentity, Runtime, RuntimeStartError
from resources.runtimes.faults import reported
from resources.runtimes.runner import Runner
from resources.runtimes.supervision import Supervision

START_TIMEOUT = 30.0  # seconds for a runner to import late packages and answer
_SEND_TIMEOUT = 5.0  # seconds for a waiting runner to read a frame
_FAULT = "the teardown failed; the worker's log says why"


class ForkedRuntime(Runtime):
    """A runner while one placement uses it."""

    def __init__(
        self,
        child: Runner,
        placement: Placement,
        identity: RunIdentity,
        limits: RunLimits,
        grants: Sequence[Grant],
        on_resource: OnResource,
    ) -> None:
        self._child = child
        self._placement = placement
        self._identity = identity
        self._limits = limits
        self._grants = tuple(grants)
        self._on_resource = on_resource
        self._handles: set[str] = set()  # allocated, and not reported closed
        self._usage = Usage()
        self._opened = False
        self._closing = False
        self._closed = False
        self._lock = threading.Lock()  # held while `_closed` is checked and acted upon

    @property
    def pid(self) -> int:
        """Return the process id of the runner."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """True if the runner lives and is this placement's."""
        return not self._closed and not self._child.ended()

    @property
    def lost(self) -> bool:
        """True if the runner was ended for want of a keepalive."""
        return self._child.is_lost

    @property
    def usage(self) -> Usage:
        """Return what the run has used in this runner; known once it is closed."""
        return self._usage

    def open(self) -> None:
        """Open the context in the runner."""
        frame = Open(
            execution_id=str(self._placement.execution_id),
            tenant_id=self._identity.tenant,
            user_id=self._identity.user_id,
            request_id=self._identity.request_id,
            epoch=self._placement.epoch,
            resources=self._grants,
        )
        eager = any(grant.eager for grant in self._grants)
        self._grants = ()  # their secrets are no longer needed
        if self._child.has_answered and not eager:
            # It has imported everything and opens nothing eager: its answer comes before that to the first step.
            self._child.post(frame, Ready, _SEND_TIMEOUT)
        else:
            self._child.ask(frame, Ready, START_TIMEOUT, self._track)
        self._opened = True

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Run one attempt of a step under supervision."""
        return Supervision(
            self._child,
            run,
            deadline=deadline,
            cancelled=cancelled,
            on_frame=on_frame,
            on_resource=self._track,
            output_kb=self._limits.output_kb,
        ).result()

    def begin_close(self) -> None:
        """Send CLOSE; while the runner tears the context down, the worker writes the checkpoint."""
        if self._opened and not self._closing and self.alive:
            self._closing = True
            with (
                reported("a runner was not sent CLOSE"),
                contextlib.suppress(RuntimeStartError),  # it is dead then, which `close` finds
            ):
                self._child.post(Close(), Closed, _SEND_TIMEOUT)

    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down and give the runner back in any case."""
        if self._closed:
            return ()
        errors: tuple[str, ...] = (_FAULT,)
        try:
            with reported("a context was not torn down"):
                errors = self._teardown(timeout)
        finally:
            self._give_back(clean=not errors)
        return errors

    def _give_back(self, *, clean: bool) -> None:
        reusable = False
        try:
            with reported("the state of a runner was not read"), self._lock:
                self._closed = True
                reusable = clean and not self._child.ended()
        finally:
            self._return_child(clean=reusable)

    @abstractmethod
    def _return_child(self, *, clean: bool) -> None:
        """Give the runner back to where it came from."""

    def kill(self) -> None:
        """End the runner and what it started."""
        with self._lock:
            # Once given back, the runner may be another placement's.
            if not self._closed:
                self._child.kill()

    def _teardown(self, timeout: float) -> tuple[str, ...]:
        if not self._opened or not self.alive:
            return ()
        self.begin_close()
        try:
            errors = self._child.answer(Closed, timeout, self._track).errors
        except RuntimeStartError as error:
            return (str(error),)
        if self._handles and not errors:
            # Whatever it answers, open handles must not reach the next run.
            return (f"handles that were not closed: {len(self._handles)}",)
        return errors

    def _track(self, frame: Resource) -> None:
        self._on_resource(frame)
        if frame.event == "allocated":
            self._handles.add(frame.resource_id)
        elif frame.event == "disposed" and not frame.error:
            self._handles.discard(frame.resource_id)
