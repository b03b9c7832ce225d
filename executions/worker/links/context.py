"""The open contexts of this worker: one per placement, from its first link to its end.

Timing: background-worker. Model: sync, used from all pool threads and the worker's loop. Guarantee: a context is opened
once and closed once, whatever the order in which links end. Failure: a half-opened one is closed like any other.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from uuid import UUID

from django.utils import timezone

from executions.semantics.active_run import ActiveRun
from executions.semantics.resource_tracker import ResourceTracker
from executions.transitions.claim import Claim
from executions.transitions.fence import Placement
from executions.worker.links.attempt_log import AttemptLog
from executions.worker.log_ids import log_ids
from resources.credentials import Credential
from resources.issuers.base import Issuer
from resources.runtimes.base import Runtime

Key = tuple[UUID, int]


class Exit(Enum):
    """What comes after a context, as its last checkpoint has decided."""

    ENDED = auto()  # the run's outcome is written
    PARKED = auto()  # the run waits for a time or a person, without a slot
    RESTART = auto()  # the runtime is dead, and the run goes on in a new one


@dataclass(kw_only=True, eq=False)
class OpenContext:
    """What this worker holds for one placement."""

    placement: Placement
    run: ActiveRun
    runtime: Runtime | None = None  # none until the first link has opened it
    cancelled: threading.Event = field(default_factory=threading.Event)
    active: int = 0  # links counted in and not yet out
    working: int = 0  # of these, links whose body has not ended
    exit: Exit | None = None
    next_step: str = ""  # as the last checkpoint has it
    ahead: Claim | None = None  # on that step, made with that checkpoint
    journal: AttemptLog | None = None  # of the attempt that runs now
    tracker: ResourceTracker = field(default_factory=lambda: ResourceTracker(now=timezone.now))
    credentials: list[tuple[Issuer, Credential]] = field(default_factory=list)  # not yet revoked
    lost: bool = False  # the placement is over for us: dispose, write nothing

    @property
    def key(self) -> Key:
        """What it is found by."""
        return self.placement.key

    @cached_property
    def log_ids(self) -> dict[str, object]:
        """What its log lines carry."""
        return log_ids(self.placement)


class Contexts:
    """All open contexts of this worker; every method is safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Key, OpenContext] = {}
        self._in_flight: Counter[Key] = Counter()
        self._claiming: Counter[Key] = Counter()
        self._idle_since: dict[Key, float] = {}

    # --- every link, claimed or not
    def link_begins(self, key: Key) -> None:
        """A link of this placement has reached a thread."""
        with self._lock:
            self._in_flight[key] += 1

    def link_ends(self, key: Key) -> None:
        """It has left the thread."""
        with self._lock:
            self._in_flight[key] -= 1
            if not self._in_flight[key]:
                del self._in_flight[key]
                self._idle_since[key] = time.monotonic()

    def idle_seconds(self, key: Key) -> float:
        """How long no link of this placement has been in a thread; counted from the first time it is asked."""
        with self._lock:
            if key in self._in_flight:
                return 0.0
            now = time.monotonic()
            return now - self._idle_since.setdefault(key, now)

    def any_in_flight(self) -> bool:
        """Whether any link is in a thread, claimed or about to be."""
        with self._lock:
            return bool(self._in_flight)

    def forget(self, held: set[Key]) -> None:
        """Drop what is remembered of placements that are over."""
        with self._lock:
            for key in self._idle_since.keys() - held:
                del self._idle_since[key]

    def restart_idle(self, key: Key) -> None:
        """Count anew: something was done about it."""
        with self._lock:
            self._idle_since[key] = time.monotonic()

    # --- links that were claimed
    def join(self, placement: Placement, new: Callable[[], OpenContext]) -> OpenContext:
        """Count a link in, into the placement's context or a new one. The claim lets one link at a time come here."""
        context = self.get(placement.key) or new()
        with self._lock:
            self._open[placement.key] = context
            context.active += 1
            context.working += 1
        return context

    def join_ahead(self, key: Key, path: str) -> tuple[OpenContext, Claim] | None:
        """Count a link in whose step was claimed with the checkpoint before it; one link takes that claim."""
        with self._lock:
            context = self._open.get(key)
            if (
                context is None
                or context.lost
                or context.ahead is None
                or context.next_step != path
            ):
                return None
            claim, context.ahead = context.ahead, None
            context.active += 1
            context.working += 1
        return context, claim

    def rest(self, context: OpenContext) -> None:
        """The body of a link has ended; it is not yet counted out, since it may still publish the next link."""
        with self._lock:
            context.working -= 1

    def leave(self, context: OpenContext) -> bool:
        """Count a link out; true if the context is over, and it is now the caller's to close."""
        with self._lock:
            context.active -= 1
            return self._take(context)

    def take(self, context: OpenContext) -> bool:
        """True if the context is over and no link is in it: it is now the caller's to close."""
        with self._lock:
            return self._take(context)

    @contextmanager
    def claiming(self, key: Key) -> Iterator[None]:
        """A link is about to claim its step and to join: it counts as one that is at work."""
        with self._lock:
            self._claiming[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._claiming[key] -= 1
                if not self._claiming[key]:
                    del self._claiming[key]

    def abandon(self, context: OpenContext) -> bool:
        """True if no body is at work in it: no link will get in any more, and it is now the caller's to tear down."""
        with self._lock:
            if context.working or context.key in self._claiming:
                return False
            context.lost = True
            return self._open.pop(context.key, None) is not None

    def put_back(self, context: OpenContext) -> None:
        """The close did not work out: the loop will try it again."""
        with self._lock:
            self._open[context.key] = context

    def get(self, key: Key) -> OpenContext | None:
        """The context of a placement, if it is open here."""
        with self._lock:
            return self._open.get(key)

    def all(self) -> list[OpenContext]:
        """Those open now."""
        with self._lock:
            return list(self._open.values())

    def _take(self, context: OpenContext) -> bool:
        over = not context.active and (context.exit is not None or context.lost)
        return over and self._open.pop(context.key, None) is not None
