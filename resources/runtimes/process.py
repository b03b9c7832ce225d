"""The level `process`: a fresh runner for each run, in namespaces of its own, with limits.

Timing: a start takes the zygote some milliseconds; the sandbox is built while the worker goes on.
Model: any thread; at most `size` sandboxes at the same time.
Guarantee: nothing is reused, and nothing weaker takes the place of a sandbox that cannot be built.
Failure: a machine that cannot build one does not offer the level, and says why and what to do.
"""

import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from isolane.limits import RunLimits
from isolane.protocol import Describe, Grant, NodeCatalogue, Run
from isolane.results import Code, StepResult
from isolane.sandbox import landlock
from isolane.sandbox.spec import Wall
from isolane.text import MESSAGE_MAX
from resources.gate.brokers.share import share_of
from resources.gate.gate import Gate, OnConnection
from resources.gate.plan import plan_gate
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
    Availability,
    OnFrame,
    OnResource,
    PoolExhaustedError,
    RunIdentity,
    Runtime,
    RuntimeBackend,
    RuntimeStartError,
    ignore,
)
from resources.runtimes.cgroups.detection import CgroupFinding, find_cgroups
from resources.runtimes.faults import reported
from resources.runtimes.forked_runtime import START_TIMEOUT, ForkedRuntime
from resources.runtimes.interpreter import zygote_program
from resources.runtimes.keepalive import KeepaliveTerm
from resources.runtimes.level_facts import facts_of, late_facts
from resources.runtimes.outside_users import outside_user
from resources.runtimes.refusals import EXPOSED_PROGRAM, is_passing, old_kernel, way_out
from resources.runtimes.sandbox import ALL_WALLS, SandboxRunner
from resources.runtimes.seccomp import SeccompUnavailable, compile_policy
from resources.runtimes.zygote import (
    SandboxRefused,
    Zygote,
    ZygoteOptions,
    release_zygote,
    share_zygote,
)

# With which the level is tried, and nodes are described, unless the platform has others: all that a run may have.
_TRIED = RunLimits(
    cpu=1.0, ram_mb=512, processes=64, disk_mb=100, open_files=256, output_kb=256,
    connections=64, network_mb=100, idle_seconds=1800,
)  # fmt: skip
_TRIED_SECONDS = 3600.0  # of a run; the try itself has much less
_TRIES = 2
_PAUSES = (0.2, 1.0, 3.0)  # seconds


class ProcessBackend(RuntimeBackend):
    """Sandboxes that are forked from the worker's zygote."""

    walls: ClassVar[frozenset[Wall]] = ALL_WALLS

    def __init__(
        self,
        *,
        level: str,
        size: int,
        packages: Sequence[str] = (),
        tasks: Sequence[str] = (),
        paths: Sequence[str | Path] = (),
        hidden: Sequence[str | Path] = (),
        limits: RunLimits = _TRIED,
    ) -> None:
        """`limits`: those of most runs, with which the level is tried."""
        super().__init__(level=level)
        self._limits = replace(limits, seconds=_TRIED_SECONDS)
        options = ZygoteOptions.of(packages=packages, tasks=tasks, paths=paths, hidden=hidden)
        self._zygote = share_zygote(options, self)
        self._keepalive = KeepaliveTerm()
        self._size = size
        self._lock = threading.Lock()
        self._slots: set[int] = set()  # taken
        self._busy: set[SandboxRunner] = set()
        self._retired: set[SandboxRunner] = set()  # no longer used, and not gone yet
        self._tried: Availability | None = None
        self._cgroups: CgroupFinding | None = None

    @property
    def zygote(self) -> Zygote:
        """Return the zygote of its sandboxes."""
        return self._zygote

    @property
    def cgroups(self) -> CgroupFinding:
        """Return the cgroups that count for whole runs here, if any, and why not."""
        if self._cgroups is None:
            self._cgroups = find_cgroups()
        return self._cgroups

    def availability(self) -> Availability:
        """Try the whole set-up, once."""
        if self._tried is None:
            self._tried = self._try()
        return self._tried

    def facts(self) -> tuple[str, ...]:
        """Return who keeps the limits here, and which walls this kernel has."""
        return (*facts_of(self.cgroups, landlock.abi()), *late_facts(self._zygote.late))

    def describe(self) -> NodeCatalogue:
        """Ask a new runner with all limits for its catalogue."""
        child = self._begin(self._limits, slot=self._size)
        try:
            return child.ask(Describe(), NodeCatalogue, START_TIMEOUT)
        finally:
            self._dispose(child)

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
        """Start a sandbox."""
        slot = self._take_slot()
        try:
            share = share_of(placement.tenant_id)
            plan = plan_gate(grants, share)
            ids = {
                "execution_id": str(placement.execution_id),
                "tenant_id": identity.tenant,
                "epoch": placement.epoch,
            }
            gate = Gate(plan, limits=limits, on_connection=on_connection, ids=ids, share=share)
            types = {grant.type for grant in plan.grants}
            child = self._begin(limits, slot=slot, gate=gate, types=types)
        except BaseException:
            self._free(slot)
            raise
        with self._lock:
            self._busy.add(child)
        return ProcessRuntime(
            self, slot, child, placement, identity, limits, plan.grants, on_resource
        )

    def end(self, child: SandboxRunner, slot: int) -> None:
        """End a sandbox that a run has used, and free its slot in any case."""
        try:
            self._dispose(child)
        finally:
            self._free(slot)

    def keepalive(self, *, until: float) -> None:
        """Tell every guard."""
        self._keepalive.renew(until)
        with self._lock:
            busy = list(self._busy)
        for child in busy:
            child.keep_alive(until)

    def sweep(self) -> None:
        """End what has not ended yet, and remove the cgroups that dead workers left. The rest ended with its worker."""
        with self._lock:
            left = list(self._retired)
        for child in left:
            self._dispose(child)
        if self._cgroups is not None and self._cgroups.cgroups is not None:
            self._cgroups.cgroups.sweep()

    def stop(self) -> None:
        """End all sandboxes; their users dispose of them."""
        with self._lock:
            busy = list(self._busy)
        for child in busy:
            with reported("a sandbox was not ended"):
                child.kill()
        with reported("the zygote was not ended"):
            release_zygote(self._zygote, self)

    def _try(self) -> Availability:
        if reason := old_kernel(os.uname().release):  # nothing that can be tried would show it
            return Availability(ok=False, reason=reason)
        if not zygote_program().is_safe:
            return Availability(ok=False, reason=EXPOSED_PROGRAM)
        for _ in range(_TRIES):
            try:
                compile_policy()
                self._describe_patiently()
            except (SeccompUnavailable, SandboxRefused) as error:
                return Availability(ok=False, reason=way_out(error))
            except RuntimeStartError as error:  # its zygote may have been killed at this moment
                found = Availability(ok=False, reason=str(error))
            else:
                return Availability(ok=True)
        return found

    def _describe_patiently(self) -> NodeCatalogue:
        """Ask again after a while if the machine has no process or memory to spare at the moment."""
        for pause in _PAUSES:
            try:
                return self.describe()
            except SandboxRefused as error:
                if not is_passing(error):
                    raise
            time.sleep(pause)
        return self.describe()

    @property
    def _counts_ram(self) -> bool:
        cgroups = self.cgroups.cgroups
        return cgroups is not None and "ram_mb" in cgroups.kept

    def _begin(
        self,
        limits: RunLimits,
        *,
        slot: int,
        gate: Gate | None = None,
        types: Collection[str] = (),
    ) -> SandboxRunner:
        try:
            return SandboxRunner(
                zygote=self._zygote,
                keepalive=self._keepalive,
                cgroups=self.cgroups.cgroups,
                program=compile_policy(counted=self._counts_ram),
                limits=limits,
                outside=outside_user(slot),
                gate=gate,
                types=types,
                walls=self.walls,
            )
        except OSError as error:
            raise RuntimeStartError(f"the sandbox cannot be started: {error}") from error

    def _dispose(self, child: SandboxRunner) -> None:
        is_gone = False
        with reported("a sandbox was not disposed of"):
            is_gone = child.dispose()
        with self._lock:
            self._busy.discard(child)
            (self._retired.discard if is_gone else self._retired.add)(child)

    def _take_slot(self) -> int:
        with self._lock:
            free = next((slot for slot in range(self._size) if slot not in self._slots), None)
            if free is None:
                raise PoolExhaustedError(
                    f"all {self._size} runtimes of level {self.level} are in use"
                )
            self._slots.add(free)
            return free

    def _free(self, slot: int) -> None:
        with self._lock:
            self._slots.discard(slot)


class ProcessRuntime(ForkedRuntime):
    """A sandbox while its run uses it."""

    _child: SandboxRunner

    def __init__(
        self,
        backend: ProcessBackend,
        slot: int,
        child: SandboxRunner,
        placement: Placement,
        identity: RunIdentity,
        limits: RunLimits,
        grants: Sequence[Grant],
        on_resource: OnResource,
    ) -> None:
        super().__init__(child, placement, identity, limits, grants, on_resource)
        self._backend = backend
        self._slot = slot

    def open(self) -> None:
        """Open the context once the run's routes can be used."""
        if not self._child.wait_for_gate(START_TIMEOUT):
            self._child.kill()
            raise RuntimeStartError("the forwarder of the sandbox did not answer in time")
        super().open()

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Run one attempt; a failure after a limit was hit is that of the limit."""
        result = super().run(run, deadline=deadline, cancelled=cancelled, on_frame=on_frame)
        if result.code is not Code.UNKNOWN_ERROR or (excess := self._child.excess()) is None:
            return result
        # What the step itself says stays: it may have reached the limit earlier, and coped.
        message = f"{result.message}; {self._child.explain(excess)}"
        return replace(result, code=excess, message=message[:MESSAGE_MAX])

    def _return_child(self, *, clean: bool) -> None:
        if clean:
            with reported("the last bytes of a run were not awaited"):
                self._child.flush_gate()
        self._backend.end(self._child, self._slot)
        self._usage = self._child.usage()
