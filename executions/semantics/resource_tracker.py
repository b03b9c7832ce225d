"""The tracker of one context's resources: every handle and every credential, from first to last. Pure."""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from executions.semantics.record_error import RecordErrorCode, error_text
from isolane.protocol import Grant, ProtocolError, Resource

MAX_HANDLES = 10_000  # of one context: a step must not fill the ledger
MAX_FRAMES = 100_000  # nor the log; the largest blueprint hands 50 resources to 1000 steps
_STEP = re.compile(r"[a-z][a-z0-9_-]{0,199}")


class Disposition(StrEnum):
    """The end of a resource."""

    OPEN = ""
    DISPOSED = "disposed"  # closed, or revoked, as it should be
    KILLED = "killed"  # with its runtime
    SWEPT = "swept"  # settled after its worker was gone
    FAILED = "failed"  # it never came to be


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedResource:
    """One handle or credential in its present state; what is stored of it is a ResourceRecord."""

    resource_id: str
    name: str  # as the blueprint calls it
    type: str
    definition: str
    step: str  # the step that opened it; empty if the context did
    opened_at: datetime
    closed_at: datetime | None = None
    ended: Disposition = Disposition.OPEN
    error_code: RecordErrorCode = RecordErrorCode.NONE
    error: str = ""
    is_credential: bool = False  # at a remote server: it outlives the runtime

    @property
    def error_text(self) -> str:
        """The error as people read it; empty if there is none."""
        return error_text(self.error_code, self.error)


class ResourceTracker:
    """Tracks the resources of one context; safe from any thread."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._grants: dict[str, Grant] = {}
        self._steps: frozenset[str] = frozenset()
        self._now = now
        # By their ids, of which none is in both: a runtime cannot report on credentials.
        self._handles: dict[str, TrackedResource] = {}
        self._credentials: dict[str, TrackedResource] = {}
        self._used: set[tuple[str, str]] = set()  # handles, and the steps that they were handed to
        self._frames = 0
        self._unwritten: set[str] = set()
        self._lock = threading.Lock()

    def set_grants(self, grants: Iterable[Grant], steps: Collection[str] = ()) -> None:
        """Allow these resources to be opened by these steps; by any step if none is named."""
        self._grants = {grant.name: grant for grant in grants}
        self._steps = frozenset(steps)

    def report(self, frame: Resource) -> TrackedResource:
        """Accept a runtime's report, or raise ProtocolError: only granted resources and open handles are possible."""
        grant = self._grants.get(frame.name)
        if grant is None:
            raise ProtocolError(f"Resource: {frame.name[:64]!r} was not granted")
        if not self._is_step(frame.step):
            raise ProtocolError(f"Resource: {frame.step[:64]!r} is not a step of this run")
        with self._lock:
            self._frames += 1
            if self._frames > MAX_FRAMES:
                raise ProtocolError(f"Resource: more than {MAX_FRAMES} frames in one context")
            if frame.event in {"allocated", "failed"}:
                return self._opened(frame, grant)
            handle = self._open_handle(frame, grant)
            if frame.event == "reused":
                self._use(frame)
                return handle
            # A handle that could not be closed ends with its runtime.
            ended = Disposition.OPEN if frame.error else Disposition.DISPOSED
            return self._end(handle, ended, error=frame.error)

    def add_credential(self, grant: Grant, kind: str, remote_id: str) -> TrackedResource:
        """Track a credential that exists, or is about to, until it is revoked; the ledger has it already."""
        credential = TrackedResource(
            resource_id=remote_id,
            name=grant.name,
            type=kind,
            definition=grant.definition,
            step="",
            opened_at=self._now(),
            is_credential=True,
        )
        with self._lock:
            self._credentials[remote_id] = credential
        return credential

    def end_revoked(self, remote_id: str) -> TrackedResource:
        """Record that a credential was revoked."""
        with self._lock:
            return self._end(self._credentials[remote_id], Disposition.DISPOSED)

    def keep_unrevoked(
        self, remote_id: str, error: str = "", *, code: RecordErrorCode = RecordErrorCode.NONE
    ) -> TrackedResource:
        """Record that revoking a credential failed: it may still exist, and the sweeper goes on."""
        with self._lock:
            found = self._credentials[remote_id]
            return self._end(found, Disposition.OPEN, code=code, error=error)

    def end_not_issued(self, remote_id: str) -> TrackedResource:
        """Record that a planned credential was certainly never made."""
        with self._lock:
            found = self._credentials[remote_id]
            return self._end(found, Disposition.FAILED, code=RecordErrorCode.NOT_ISSUED)

    def end_killed(self) -> list[TrackedResource]:
        """Record that the runtime is gone, and every open handle with it."""
        with self._lock:
            open_handles = [handle for handle in self._handles.values() if not handle.ended]
            return [
                self._end(handle, Disposition.KILLED, error=handle.error) for handle in open_handles
            ]

    def ended_credentials(self) -> list[str]:
        """Return the ids of the credentials that no remote server has: revoked, or never issued."""
        with self._lock:
            return [remote_id for remote_id, found in self._credentials.items() if found.ended]

    def unwritten(self) -> Sequence[TrackedResource]:
        """Return the resources that have changed since they were written."""
        with self._lock:
            return [self._tracked(resource_id) for resource_id in sorted(self._unwritten)]

    def mark_written(self, written: Iterable[TrackedResource]) -> None:
        """Note that these are in the database as they are here, unless they have changed meanwhile."""
        with self._lock:
            for resource in written:
                if self._tracked(resource.resource_id) is resource:
                    self._unwritten.discard(resource.resource_id)

    def _tracked(self, resource_id: str) -> TrackedResource:
        return self._handles.get(resource_id) or self._credentials[resource_id]

    def _is_step(self, step: str) -> bool:
        if not step:  # the context itself
            return True
        return step in self._steps if self._steps else bool(_STEP.fullmatch(step))

    def _open_handle(self, frame: Resource, grant: Grant) -> TrackedResource:
        handle = self._handles.get(frame.resource_id)
        # One with an error was to be closed before, and is handed out and closed no more.
        if (
            handle is None
            or handle.ended
            or handle.error
            or handle.name not in self._same_handle(grant)
        ):
            raise ProtocolError(f"Resource: no handle {frame.resource_id} is open")
        return handle

    def _use(self, frame: Resource) -> None:
        use = (frame.resource_id, frame.step)
        if use in self._used:
            raise ProtocolError(f"Resource: {frame.step!r} has {frame.resource_id} already")
        self._used.add(use)

    def _opened(self, frame: Resource, grant: Grant) -> TrackedResource:
        if frame.resource_id in self._handles or frame.resource_id in self._credentials:
            raise ProtocolError(f"Resource: handle {frame.resource_id} exists already")
        if frame.resource_id.rpartition("_")[0] != grant.type:
            raise ProtocolError(
                f"Resource: {frame.resource_id} is not a handle of type {grant.type}"
            )
        if len(self._handles) >= MAX_HANDLES:
            raise ProtocolError(f"Resource: more than {MAX_HANDLES} handles in one context")
        self._use(frame)
        now = self._now()
        failed = frame.event == "failed"
        handle = TrackedResource(
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
        self._set(handle)
        return handle

    def _same_handle(self, grant: Grant) -> set[str]:
        """Return the names that share this grant's handle: those of one definition in one scope."""
        return {
            name
            for name, other in self._grants.items()
            if (other.definition, other.scope) == (grant.definition, grant.scope)
        }

    def _end(
        self,
        resource: TrackedResource,
        ended: Disposition,
        *,
        code: RecordErrorCode = RecordErrorCode.NONE,
        error: str = "",
    ) -> TrackedResource:
        closed_at = max(self._now(), resource.opened_at) if ended else None
        resource = replace(resource, ended=ended, closed_at=closed_at, error_code=code, error=error)
        self._set(resource)
        return resource

    def _set(self, resource: TrackedResource) -> None:
        tracked = self._credentials if resource.is_credential else self._handles
        tracked[resource.resource_id] = resource
        self._unwritten.add(resource.resource_id)
