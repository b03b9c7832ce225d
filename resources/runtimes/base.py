"""The interface of runtime backends, in the manner of Django's: one backend per isolation level."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isolane.protocol import Catalogue, Cost, Grant, Log, Progress, Resource, Run
from isolane.results import StepResult
from resources.placement import Placement

OnFrame = Callable[[Log | Progress | Cost], None]
# Raises ProtocolError at an impossible report: then the runtime is ended.
OnResource = Callable[[Resource], None]


def ignore(_: Resource) -> None:
    """Ignore a report: for runs without resources."""


class RuntimeStartError(Exception):
    """A runtime could not be started, opened or asked."""


class PoolExhaustedError(RuntimeStartError):
    """All runtimes of this backend are taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunIdentity:
    """The names that steps see, beside the placement's ids."""

    tenant: str  # its name, which may be given again after a deletion; its id never is
    user_id: str = ""  # of the user that submitted the run
    request_id: str = ""  # of the request that did


@dataclass(frozen=True, kw_only=True)
class Availability:
    """The answer whether this machine can give a level, with the reason if it cannot."""

    ok: bool
    reason: str = ""


class Runtime(ABC):
    """The process or container in which one context lives and its steps run.

    One thread uses it; `kill` and `alive` are safe from any. Close it also after a failed `open`
    and after `kill`.
    """

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Say whether steps can run in it."""

    @property
    def lost(self) -> bool:
        """Say whether it was ended for want of a keepalive: not a failure of the step that ran in it."""
        return False

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
        """Begin to tear the context down, without waiting; no step runs in it any more, and `close` follows."""

    @abstractmethod
    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down within timeout seconds; return the errors. Repeatable."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once."""


class RuntimeBackend(ABC):
    """Gives runtimes of one isolation level."""

    def __init__(self, *, level: str) -> None:
        self.level = level

    @abstractmethod
    def availability(self) -> Availability:
        """Say whether this machine can give this level."""

    @abstractmethod
    def describe(self) -> Catalogue:
        """Return the nodes that its runtimes can run, or raise RuntimeStartError."""

    @abstractmethod
    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
    ) -> Runtime:
        """Return a runtime for this placement and its resources, or raise RuntimeStartError.

        `on_resource` is called with every report about them, in the thread that uses the runtime.
        """

    @abstractmethod
    def keepalive(self, *, until: float) -> None:
        """Let its runtimes live until then (monotonic); without further calls they end. Does not wait."""

    @abstractmethod
    def sweep(self) -> None:
        """End and remove the runtimes of this level that dead workers have left on this machine."""

    @abstractmethod
    def stop(self) -> None:
        """End all of its runtimes; safe from any thread."""
