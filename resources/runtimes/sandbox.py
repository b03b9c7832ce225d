"""A runner of the level `process`: in namespaces of its own, under a guard that ends all of it.

Timing: starting returns before the sandbox is built; kill waits for the end.
Model: see resources.runtimes.runner; the worker knows the guard, which is process 1 of the sandbox.
Guarantee: with the guard everything of the run ends: processes, files, mounts, network.
Failure: an error while it is ended is logged, never raised; a cgroup that stays is swept later.
"""

import base64
import contextlib
import logging
import signal
import socket
from collections.abc import Collection

from isolane.excess import sentence_of
from isolane.limits import RunLimits, Usage
from isolane.results import Code
from isolane.sandbox.guard import END_NOW, KEEPALIVE
from isolane.sandbox.report import ExitReport
from isolane.sandbox.spec import SandboxSpec, Wall
from resources.gate.gate import Gate
from resources.runtimes.cgroups.group import RunGroup
from resources.runtimes.cgroups.tree import Cgroups
from resources.runtimes.deaths import failure_of
from resources.runtimes.faults import reported
from resources.runtimes.keepalive import KeepaliveTerm
from resources.runtimes.runner import Runner
from resources.runtimes.zygote import Zygote

logger = logging.getLogger(__name__)
ALL_WALLS = frozenset(Wall)
_FLUSH_SECONDS = 1.0
_REPORT_SECONDS = (
    0.5  # for a guard to end by itself: its runner may have closed its stream and live
)


class SandboxRunner(Runner):
    """One runner for one run."""

    def __init__(
        self,
        *,
        zygote: Zygote,
        keepalive: KeepaliveTerm,
        cgroups: Cgroups | None,
        program: bytes,
        limits: RunLimits,
        outside: int | None,
        gate: Gate | None = None,
        types: Collection[str] = (),
        walls: frozenset[Wall] = ALL_WALLS,
    ) -> None:
        super().__init__()
        self._gate = gate
        self._keepalive = keepalive
        self._limits = limits
        self._group: RunGroup | None = None
        spec = SandboxSpec(
            limits=limits,
            until=keepalive.until,
            outside=outside,
            counted=frozenset(cgroups.kept) if cgroups else frozenset(),
            walls=walls,
            has_routes=gate is not None and gate.has_routes,
        )
        request = {
            "sandbox": spec.encode(),
            "program": base64.b64encode(program).decode(),
            "types": sorted(types),  # of resources, whose drivers the zygote imports for all runs
        }
        with contextlib.ExitStack() as undo:
            if cgroups is not None and Wall.LIMITS in walls:
                self._group = cgroups.create(limits)
                undo.callback(self._group.remove)
            joins = self._group.join_fds() if self._group else ()
            self._fork(zygote, request, joins, gated=True)
            undo.pop_all()
        if gate is None:
            self.gate_channel.close()
        else:
            gate.start(
                self.gate_channel,
                on_fault=self.kill,
                # A worker that was stopped must not send on what it finds when it continues.
                is_over=lambda: keepalive.lapsed_since(self._started_at),
            )
        self._used = Usage()
        self._is_counted = False  # what it used was read from its cgroup
        self._excess: Code | None = None

    def keep_alive(self, until: float) -> None:
        """Let it live until then, without waiting."""
        with self._line_lock, contextlib.suppress(OSError):
            self._lifeline.send(KEEPALIVE.pack(until), socket.MSG_DONTWAIT)

    @property
    def is_lost(self) -> bool:
        """True if its keepalive ran out, or its zygote died; known once it is dead."""
        return (
            (self._is_orphan and not self._reports)
            or self.report().lapsed
            or self._keepalive.lapsed_since(self._started_at)
        )

    def usage(self) -> Usage:
        """Return what all of its processes have used; known once it is dead."""
        return self._used

    def excess(self) -> Code | None:
        """Return the code of a limit that a living or dead one has hit, as far as a cgroup tells."""
        group = self._group  # another thread may be ending it
        if group is not None:
            with contextlib.suppress(OSError):
                self._excess = group.excess() or self._excess
        return self._excess

    def explain(self, code: Code) -> str:
        """Return the sentence for an excess."""
        return sentence_of(code, self._limits)

    def cause_of_death(self) -> tuple[Code, str]:
        """Return the limit that ended it, a breach of the gate's protocol, or that it died by itself."""
        if self._gate is not None and self._gate.fault:
            message = f"the runtime broke the protocol of its gate: {self._gate.fault}"
            return Code.POLICY_VIOLATION, message
        return (
            failure_of(self.report(), self._limits, excess=self._excess) or super().cause_of_death()
        )

    def wait_for_gate(self, timeout: float) -> bool:
        """Wait until its routes can be used, or it has ended; false if that takes longer."""
        return (
            self._gate is None or not self._gate.has_routes or self._gate.wait_until_open(timeout)
        )

    def flush_gate(self) -> None:
        """Wait, for a moment, until the last bytes that the run has sent are here; kill it afterwards."""
        if self._gate is not None and not self._gate.flush(_FLUSH_SECONDS):
            logger.info("a gate was not flushed in time", extra={"event": "GATE_NOT_FLUSHED"})

    def dispose(self) -> bool:
        """Do as every runner does, and close its gate."""
        is_gone = super().dispose()
        if self._gate is not None:
            with reported("the gate of a sandbox was not closed"):
                self._gate.close()
        return is_gone

    def wait_for_report(self) -> None:
        """Let the guard notice the end of the runner, which knows how it ended."""
        self._wait(_REPORT_SECONDS)

    def _end(self) -> None:
        if self._group is None:  # nothing else tells what it used
            self.keep_alive(END_NOW)
            self._wait(_REPORT_SECONDS)
        with reported("a sandbox was not ended"):
            self._signal(signal.SIGKILL)

    def _ended(self) -> None:
        """Read what the cgroup counted, then remove it."""
        if self._is_counted:
            return
        told = self._used_by_reports()
        if self._group is None or not self._is_over:
            self._used = told
            return
        group, self._group = self._group, None
        with reported("what a run used was not read"):
            self._excess = group.excess() or self._excess
            counted = group.usage()
            # Reports count pages that are shared with the zygote, too: they are for what the group does not count.
            self._used = Usage(
                cpu_seconds=counted.cpu_seconds or told.cpu_seconds,
                peak_ram_mb=counted.peak_ram_mb or told.peak_ram_mb,
            )
            self._is_counted = True
        with reported("the cgroup of a run was not removed"):
            group.remove()

    def _used_by_reports(self) -> Usage:
        known: list[Usage | ExitReport] = [self._used, *self._reports]
        return Usage(
            cpu_seconds=max(each.cpu_seconds for each in known),
            peak_ram_mb=max(each.peak_ram_mb for each in known),
        )
