"""The interface of runtimes and their backends, in the manner of Django's backends."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isolane.limits import RunLimits, Usage
from isolane.protocol import Cost, Grant, Log, NodeCatalogue, Progress, Resource, Run
from isolane.results import StepResult
from resources.gate.gate import OnConnection
from resources.placement import Placement

UNLIMITED = RunLimits()
OnFrame = Callable[[Log | Progress | Cost], None]
# Raises ProtocolError at a report that cannot be true: then the runtime is ended.
OnResource = Callable[[Resource], None]


def ignore(_: object) -> None:
    """Drop the report: for runs without resources or connections."""


class RuntimeStartError(Exception):
    """A runtime could not be started, opened or asked."""


class PoolExhaustedError(RuntimeStartError):
    """All runtimes of this backend are in use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunIdentity:
    """The names that steps see, beside the placement's ids."""

    tenant: str  # its name, which may be given again after a deletion; its id never is
    user_id: str = ""  # of the user that submitted the run
    request_id: str = ""  # of the request that did


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Tells whether this machine can offer a level and, if not, why."""

    ok: bool
    reason: str = ""


class Runtime(ABC):
    """A runtime: it holds the context of one placement and runs its steps.

    One thread uses it; `kill` and `alive` are safe from any. Close it also after a failed `open`
    and after `kill`.
    """

    @property
    @abstractmethod
    def alive(self) -> bool:
        """True if steps can run in it."""

    @property
    def lost(self) -> bool:
        """True if it was ended because its keepalive ran out: that is not a failure of its step."""
        return False

    @property
    def usage(self) -> Usage:
        """Return what it has used; known once it is closed."""
        return Usage()

    @abstractmethod
    def open(self) -> None:
        """Open the context, or raise RuntimeStartError."""

    @abstractmethod
    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Run one attempt of a step until it ends, its deadline (monotonic) or its cancellation.

        It always returns a result. TIMEOUT, CANCELLED after its grace, a death and a broken
        protocol leave a dead runtime. A step that succeeds within the grace has succeeded.
        """

    @abstractmethod
    def begin_close(self) -> None:
        """Start the teardown without waiting; no step runs in it any more, and `close` follows."""

    @abstractmethod
    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down within `timeout` seconds; return the errors. Repeatable."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once."""


class RuntimeBackend(ABC):
    """Provides runtimes of one isolation level."""

    def __init__(self, *, level: str) -> None:
        self.level = level

    @abstractmethod
    def availability(self) -> Availability:
        """Say whether this machine can offer this level."""

    def facts(self) -> tuple[str, ...]:
        """Return what this machine gives at this level, in sentences; after `availability`."""
        return ()

    @abstractmethod
    def describe(self) -> NodeCatalogue:
        """Return the catalogue of its runtimes, or raise RuntimeStartError."""

    @abstractmethod
    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        limits: RunLimits = UNLIMITED,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
        on_connection: OnConnection = ignore,
    ) -> Runtime:
        """Return a runtime for this placement and its resources, or raise RuntimeStartError.

        `limits`: as far as the level can keep them. `on_resource` gets the reports on the resources, in the thread that
        uses the runtime; `on_connection` the records of connections, in another one, at a level with a gate.
        """

    @abstractmethod
    def keepalive(self, *, until: float) -> None:
        """Let its runtimes live until then (monotonic); they end unless this is repeated. Does not wait."""

    @abstractmethod
    def sweep(self) -> None:
        """End and remove what dead workers left of this level on this machine."""

    @abstractmethod
    def stop(self) -> None:
        """End all of its runtimes; safe from any thread."""
