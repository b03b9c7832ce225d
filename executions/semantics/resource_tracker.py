"""What a context holds of its resources: every handle and every issued thing, from first to last. Pure."""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from isolane.protocol import Grant, ProtocolError, Resource

MAX_HANDLES = 10_000  # of one context: a step must not fill the ledger
MAX_FRAMES = 100_000  # nor the log; the largest blueprint hands 50 resources to 1000 steps
_STEP = re.compile(r"[a-z][a-z0-9_-]{0,199}")


class Disposition(StrEnum):
    """How it ended."""

    OPEN = ""
    DISPOSED = "disposed"  # closed, or revoked, as it should be
    KILLED = "killed"  # with its runtime
    SWEPT = "swept"  # settled after its worker was gone
    FAILED = "failed"  # it never came to be


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedResource:
    """One of them, as it is now."""

    resource_id: str
    name: str  # as the blueprint calls it
    type: str
    definition: str
    step: str  # that opened it; nothing if the context did
    opened_at: datetime
    closed_at: datetime | None = None
    ended: Disposition = Disposition.OPEN
    error: str = ""
    issued: bool = False  # by the worker, at a far side: it does not go with the runtime


class ResourceTracker:
    """Of one context; safe from any thread."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._granted: dict[str, Grant] = {}
        self._steps: frozenset[str] = frozenset()
        self._now = now
        # By their ids, of which none is in both: what was issued is not the runtime's to speak of.
        self._handles: dict[str, TrackedResource] = {}
        self._issued: dict[str, TrackedResource] = {}
        self._used: set[tuple[str, str]] = set()  # handles, and the steps that they were handed to
        self._frames = 0
        self._unwritten: set[str] = set()
        self._lock = threading.Lock()

    def granted(self, grants: Iterable[Grant], steps: Collection[str] = ()) -> None:
        """These may be opened from now on, by these steps; by any if none are said."""
        self._granted = {grant.name: grant for grant in grants}
        self._steps = frozenset(steps)

    def hear(self, frame: Resource) -> TrackedResource:
        """Believe a runtime what it may say: of resources that were granted, and of handles that are open."""
        grant = self._granted.get(frame.name)
        if grant is None:
            raise ProtocolError(f"Resource: {frame.name[:64]!r} was not granted")
        if not self._is_step(frame.step):
            raise ProtocolError(f"Resource: {frame.step[:64]!r} is no step of this run")
        with self._lock:
            self._frames += 1
            if self._frames > MAX_FRAMES:
                raise ProtocolError(f"Resource: more than {MAX_FRAMES} frames in one context")
            if frame.event in {"allocated", "failed"}:
                return self._opened(frame, grant)
            held = self._open(frame, grant)
            if frame.event == "reused":
                self._use(frame)
                return held
            # What could not be closed goes with its runtime.
            return self._end(
                held, Disposition.OPEN if frame.error else Disposition.DISPOSED, frame.error
            )

    def issued(self, grant: Grant, kind: str, far_id: str) -> TrackedResource:
        """Something exists at a far side, or is about to, until it is revoked; it is in the ledger already."""
        holding = TrackedResource(
            resource_id=far_id,
            name=grant.name,
            type=kind,
            definition=grant.definition,
            step="",
            opened_at=self._now(),
            issued=True,
        )
        with self._lock:
            self._issued[far_id] = holding
        return holding

    def revoked(self, far_id: str, error: str = "") -> TrackedResource:
        """It was taken away again; with an error it may still be there, and the sweeper goes on."""
        with self._lock:
            return self._end(
                self._issued[far_id], Disposition.OPEN if error else Disposition.DISPOSED, error
            )

    def never_made(self, far_id: str, error: str) -> TrackedResource:
        """It was to be issued, and certainly was not."""
        with self._lock:
            return self._end(self._issued[far_id], Disposition.FAILED, error)

    def killed(self) -> list[TrackedResource]:
        """The runtime is gone, and every handle in it."""
        with self._lock:
            return [
                self._end(held, Disposition.KILLED, held.error) for held in self._open_handles()
            ]

    def gone(self) -> list[str]:
        """What was to be issued, or was, and is at no far side any more."""
        with self._lock:
            return [far_id for far_id, held in self._issued.items() if held.ended]

    def unwritten(self) -> Sequence[TrackedResource]:
        """Those that have changed since they were written."""
        with self._lock:
            return [self._held(resource_id) for resource_id in sorted(self._unwritten)]

    def written(self, holdings: Iterable[TrackedResource]) -> None:
        """They are in the database as they are here, unless they have changed meanwhile."""
        with self._lock:
            for holding in holdings:
                if self._held(holding.resource_id) is holding:
                    self._unwritten.discard(holding.resource_id)

    def _held(self, resource_id: str) -> TrackedResource:
        return self._handles.get(resource_id) or self._issued[resource_id]

    def _open_handles(self) -> list[TrackedResource]:
        return [held for held in self._handles.values() if not held.ended]

    def _is_step(self, step: str) -> bool:
        if not step:  # the context itself
            return True
        return step in self._steps if self._steps else bool(_STEP.fullmatch(step))

    def _open(self, frame: Resource, grant: Grant) -> TrackedResource:
        held = self._handles.get(frame.resource_id)
        # One with an error was to be closed before, and is handed out and closed no more.
        if held is None or held.ended or held.error or held.name not in self._alike(grant):
            raise ProtocolError(f"Resource: no handle {frame.resource_id} is open")
        return held

    def _use(self, frame: Resource) -> None:
        use = (frame.resource_id, frame.step)
        if use in self._used:
            raise ProtocolError(f"Resource: {frame.step!r} has {frame.resource_id} already")
        self._used.add(use)

    def _opened(self, frame: Resource, grant: Grant) -> TrackedResource:
        if frame.resource_id in self._handles or frame.resource_id in self._issued:
            raise ProtocolError(f"Resource: handle {frame.resource_id} is there already")
        if frame.resource_id.rpartition("_")[0] != grant.type:
            raise ProtocolError(f"Resource: {frame.resource_id} is no handle of type {grant.type}")
        if len(self._handles) >= MAX_HANDLES:
            raise ProtocolError(f"Resource: more than {MAX_HANDLES} handles in one context")
        self._use(frame)
        now = self._now()
        failed = frame.event == "failed"
        holding = TrackedResource(
            resource_id=frame.resource_id,
            name=frame.name,
            type=grant.type,
            definition=grant.definition,
            step=frame.step,
            opened_at=now,
            closed_at=now if failed else None,
            ended=Disposition.FAILED if failed else Disposition.OPEN,
            error=frame.error,
        )
        self._keep(holding)
        return holding

    def _alike(self, grant: Grant) -> set[str]:
        """Names of one definition in one scope share a handle."""
        return {
            name
            for name, other in self._granted.items()
            if (other.definition, other.scope) == (grant.definition, grant.scope)
        }

    def _end(self, held: TrackedResource, ended: Disposition, error: str) -> TrackedResource:
        closed_at = max(self._now(), held.opened_at) if ended else None
        held = replace(held, ended=ended, closed_at=closed_at, error=error)
        self._keep(held)
        return held

    def _keep(self, holding: TrackedResource) -> None:
        kept = self._issued if holding.issued else self._handles
        kept[holding.resource_id] = holding
        self._unwritten.add(holding.resource_id)
