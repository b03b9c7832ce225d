"""The context of one placement on this worker, from its first link to its end.

Timing: background-worker.
Model: sync, used from pool threads, the closer pool and the worker's loops.
Guarantee: it changes only by its methods, each of them safe from any thread; a claim is taken once.
Failure: a half-opened one is closed like any other; a lost one writes only its connections.
"""

import threading
from enum import Enum, auto
from functools import cached_property

from django.utils import timezone

from executions.semantics.active_run import ActiveRun
from executions.semantics.resource_tracker import ResourceTracker
from executions.transitions.claim import Claim
from executions.worker.links.attempt_log import AttemptLog
from executions.worker.log_ids import log_ids
from resources.credentials import Credential
from resources.gate.connection_log import ConnectionLog
from resources.issuers.base import Issuer
from resources.placement import Placement, PlacementKey
from resources.runtimes.base import Runtime


class Exit(Enum):
    """The sequel of a context, as its last checkpoint has decided."""

    ENDED = auto()  # the run's outcome is written
    PARKED = auto()  # the run waits for a time or a person, without a slot
    RESTART = auto()  # the runtime is dead, and the run goes on in a new one


class OpenContext:
    """Everything that this worker holds for one placement."""

    def __init__(self, *, placement: Placement, run: ActiveRun) -> None:
        self.placement = placement
        self.run = run
        self.cancelled = threading.Event()  # for the step that runs, and its wait for a retry
        self.tracker = ResourceTracker(now=timezone.now)
        self.credentials: list[tuple[Issuer, Credential]] = []  # not yet revoked
        self.connections = ConnectionLog()  # through the gate; the runtime adds them
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None
        self._attempt_log: AttemptLog | None = None
        self._active = 0
        self._working = 0
        self._next_step = ""
        self._claim_ahead: Claim | None = None
        self._exit: Exit | None = None
        self._lost = False

    @property
    def key(self) -> PlacementKey:
        """Return what the registry finds it by."""
        return self.placement.key

    @cached_property
    def log_ids(self) -> dict[str, object]:
        """Return the ids that its log lines carry."""
        return log_ids(self.placement)

    # --- its runtime and the attempt that runs there
    @property
    def runtime(self) -> Runtime | None:
        """Return its runtime; none until a link has started one."""
        return self._runtime

    @property
    def has_runtime(self) -> bool:
        """Say whether a link has started its runtime."""
        return self._runtime is not None

    def attach(self, runtime: Runtime) -> None:
        """Keep the runtime that was started for it, open or not: it is closed with the context."""
        self._runtime = runtime

    @property
    def attempt_log(self) -> AttemptLog | None:
        """Return the output of the attempt that runs now, or ran last."""
        return self._attempt_log

    def write_to(self, attempt_log: AttemptLog) -> None:
        """Begin the output of another attempt."""
        self._attempt_log = attempt_log

    def cancel(self) -> None:
        """Ask the step that runs to stop."""
        self.cancelled.set()

    # --- its links
    @property
    def active(self) -> int:
        """Return how many links are counted in and not yet out."""
        return self._active

    @property
    def working(self) -> int:
        """Return how many of these links are still in their body."""
        return self._working

    def count_in(self) -> None:
        """Count in a link that has claimed its step."""
        with self._lock:
            self._active += 1
            self._working += 1

    def count_in_ahead(self, path: str) -> Claim | None:
        """Count in a link whose step was claimed with the checkpoint before it; one link takes that claim."""
        with self._lock:
            if self._lost or self._claim_ahead is None or self._next_step != path:
                return None
            claim, self._claim_ahead = self._claim_ahead, None
            self._active += 1
            self._working += 1
        return claim

    def finish_body(self) -> None:
        """Note that the body of a link has ended; the link still counts, since Celery may be publishing the next."""
        with self._lock:
            self._working -= 1

    def count_out(self) -> None:
        """Count out a link."""
        with self._lock:
            self._active -= 1

    # --- what its last checkpoint has decided
    @property
    def next_step(self) -> str:
        """Return the path of the step that comes next; empty before the first checkpoint."""
        return self._next_step

    @property
    def has_claim_ahead(self) -> bool:
        """Say whether the next step is claimed and no link has taken the claim yet."""
        return self._claim_ahead is not None

    def advance(self, next_step: str, claim: Claim | None) -> None:
        """Note the step that comes next, and its claim if that was made with the checkpoint."""
        with self._lock:
            self._next_step, self._claim_ahead = next_step, claim

    def take_claim(self) -> Claim | None:
        """Take the claim on the next step, if there is one: the link that wrote the checkpoint runs the step itself."""
        with self._lock:
            claim, self._claim_ahead = self._claim_ahead, None
        return claim

    # --- its end
    @property
    def exit(self) -> Exit | None:
        """Return its sequel; none while further steps may run in it."""
        return self._exit

    def end(self, exit_: Exit) -> None:
        """Let no further step run in it: it is closed when its last link is counted out."""
        self._exit = exit_

    @property
    def lost(self) -> bool:
        """Say whether the placement is over for this worker: the context is disposed of, and nothing is written."""
        return self._lost

    def lose(self) -> None:
        """Give the placement up: nothing more is written for it."""
        with self._lock:
            self._lost = True

    @property
    def is_over(self) -> bool:
        """Say whether no link is in it and none will come."""
        return not self._active and (self._exit is not None or self._lost)
