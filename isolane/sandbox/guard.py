"""The first process of a sandbox: it builds the sandbox, starts the runner in it, and ends with it.

The kernel protects it from its own namespace: no step can signal, stop or trace it. With it all processes of the
sandbox end.

Timing: some milliseconds for the set-up; then it sleeps, and looks at the RAM ten times a second if no cgroup does.
Model: process 1 of its namespace, one thread; steps run in a child of it, never here.
Guarantee: nothing of the run outlives its worker, its keepalive or its runner.
Failure: a set-up that fails is reported to the worker, and no runner starts.
"""

import contextlib
import math
import os
import resource
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from isolane.channel import Channel
from isolane.gate.forwarder import bind_nameserver, forward
from isolane.limits import RunLimits
from isolane.privileges import drop_capabilities, set_dumpable
from isolane.sandbox import landlock, seccomp
from isolane.sandbox.clone import map_user
from isolane.sandbox.loopback import (
    add_loopback_v6,
    allow_low_ports,
    bound_buffers,
    raise_loopback,
)
from isolane.sandbox.ram import inherited_kb, used_ram_mb
from isolane.sandbox.report import ExitReport
from isolane.sandbox.rlimits import apply_rlimits
from isolane.sandbox.root import build_root, open_trees
from isolane.sandbox.spec import SandboxSpec, Wall
from isolane.sandbox.syscalls import SetupError, set_parent_death_signal
from isolane.sandbox.view import HOME, HOST_NAME, INSIDE_ID, View, devices

KEEPALIVE = struct.Struct("d")  # the time (monotonic) until which the sandbox may live
END_NOW = -math.inf  # as a keepalive: end, and report what was used
_RAM_SECONDS = 0.1  # between two looks
_FORWARDER_FILES = 8192  # the worker refuses connections long before
_EXITED = 0


class Guard:
    """Builds one sandbox and watches over it."""

    def __init__(
        self,
        spec: SandboxSpec,
        view: View,
        program: bytes,
        lifeline: socket.socket,
        joins: Sequence[int],
    ) -> None:
        self._spec = spec
        self._view = view
        self._devices = devices(ram_is_counted="ram_mb" in spec.counted)
        self._program = program
        self._lifeline = lifeline
        # Asked before the fork: in a new namespace nobody has an id until the map is written.
        self._user, self._group = os.geteuid(), os.getegid()
        self._joins = joins  # descriptors by which a process enters the run's cgroups
        self._inherited_kb = 0
        self._gate: Channel | None = None  # until the forwarder has it
        self._nameserver: socket.socket | None = None  # likewise; none without a network of its own
        self._forwarder = 0

    def run(
        self,
        serve: Callable[[], NoReturn],
        *,
        stream: Channel,
        gate: Channel,
        mapped: int,
    ) -> NoReturn:
        """Build the sandbox, run `serve` in a child of this process, and end with it.

        `gate` is the forwarder's, which starts when it is needed.

        `mapped` becomes readable when the zygote has written the map of users, if that is its part.
        """
        self._gate = gate
        try:
            set_parent_death_signal(signal.SIGKILL)
            self._build(mapped)
            if Wall.CAPABILITIES in self._spec.walls:
                drop_capabilities()  # the runner's, too: nothing below needs one
            set_parent_death_signal(signal.SIGKILL)  # again: a change of user clears it
            set_dumpable(dumpable=False)  # before there is a step that could look into this process
            if self._spec.looks_at_ram:
                self._inherited_kb = inherited_kb()
            runner = os.fork()  # noqa: TID251 - one thread, and meant to be a copy
            if runner == 0:
                self._become_runner()
                self._lifeline.close()
                serve()
            stream.close()
            if self._spec.has_routes:
                self._start_forwarder()
        except SetupError as error:
            self._end(ExitReport(step=error.step, errno=error.errno, reason=str(error)))
        except OSError as error:
            self._end(ExitReport(step="other", errno=error.errno or 0, reason=str(error)))
        self._watch(runner)

    def _build(self, mapped: int) -> None:
        if self._view.failure:
            raise SetupError("view", 0, self._view.failure)
        set_dumpable(dumpable=True)
        if self._spec.outside is None:
            map_user("self", inside=INSIDE_ID, outside_user=self._user, outside_group=self._group)
        elif not os.read(mapped, 1):
            raise SetupError("uid_map", 0, "the zygote has not written the map of users")
        os.close(mapped)
        # As the user outside, who may enter the folders above; what is made afterwards is the user's inside.
        trees = open_trees(self._view, self._devices) if Wall.MOUNT in self._spec.walls else []
        os.setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
        os.setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
        if Wall.MOUNT in self._spec.walls:
            build_root(self._view, trees, disk_mb=self._spec.limits.disk_mb)
        if Wall.NET in self._spec.walls:
            raise_loopback()
            allow_low_ports()
            add_loopback_v6()
            bound_buffers()
            self._nameserver = bind_nameserver()
        socket.sethostname(HOST_NAME)

    def _become_runner(self) -> None:
        """Give up, for ever, all that the set-up needed."""
        self._close_gate()
        self._join(self._spec.limits)
        set_dumpable(dumpable=True)
        os.environ.update(HOME=HOME, TMPDIR=HOME)
        os.chdir(HOME)
        self._restrict(write=(HOME, *self._devices))

    def _start_forwarder(self) -> None:
        """Let a child answer queries and carry connections, behind the same walls as the runner; once."""
        gate, nameserver = self._gate, self._nameserver
        if gate is None or nameserver is None:
            return
        self._forwarder = os.fork()  # noqa: TID251 - one thread, and meant to be a copy
        if self._forwarder == 0:
            try:
                self._lifeline.close()
                self._join(replace(self._spec.limits, open_files=_FORWARDER_FILES))
                self._restrict(write=())
                forward(gate, nameserver)
            finally:
                os._exit(1)
        self._close_gate()

    def _close_gate(self) -> None:
        if self._gate is not None:
            self._gate.close()
        if self._nameserver is not None:
            self._nameserver.close()
        self._gate = self._nameserver = None

    def _join(self, limits: RunLimits) -> None:
        """Enter the run's cgroups and keep its limits."""
        os.setsid()
        for descriptor in self._joins:
            os.write(descriptor, b"0")
            os.close(descriptor)
        if Wall.LIMITS in self._spec.walls:
            apply_rlimits(limits, counted=self._spec.counted)

    def _restrict(self, *, write: Sequence[str]) -> None:
        if Wall.LANDLOCK in self._spec.walls and landlock.abi() > 0:
            landlock.restrict(read=self._view.readable, write=write)
        if Wall.SECCOMP in self._spec.walls:
            seccomp.load(self._program)

    # --- while the runner lives
    def _watch(self, runner: int) -> NoReturn:
        until, poll, wake = self._spec.until, select.poll(), _wake_at_child()
        poll.register(self._lifeline, select.POLLIN)
        poll.register(wake, select.POLLIN)
        queries = self._nameserver.fileno() if self._nameserver is not None else -1
        if self._nameserver is not None:
            poll.register(queries, select.POLLIN)
        look_at = time.monotonic() if self._spec.looks_at_ram else math.inf
        while True:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)  # before the look, so that what ends after it wakes us
            ended = _reap()
            if runner in ended:
                self._stop(runner, status=ended[runner])
            # Killed, for want of RAM or by a step.
            if ended.get(self._forwarder, _EXITED) != _EXITED:
                self._stop(runner)
            until = self._newest_keepalive(runner, until)
            if time.monotonic() >= until:
                self._stop(runner, lapsed=until != END_NOW)
            # Not at each death of a child, of which there may be many.
            if time.monotonic() >= look_at:
                self._check_ram(runner)
                look_at = time.monotonic() + _RAM_SECONDS
            if queries in _ready(poll, min(until, look_at) - time.monotonic()):
                poll.unregister(queries)
                with contextlib.suppress(OSError):  # no more processes: names are not known then
                    self._start_forwarder()

    def _check_ram(self, runner: int) -> None:
        used = used_ram_mb(HOME, inherited_kb=self._inherited_kb)
        if used > (self._spec.limits.ram_mb or math.inf):
            self._stop(runner, excess="RAM_EXCEEDED")

    def _newest_keepalive(self, runner: int, until: float) -> float:
        """Read all messages of the worker; its end ends the sandbox."""
        while until != END_NOW:
            try:
                message = self._lifeline.recv(KEEPALIVE.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return until
            except ConnectionError:
                message = b""
            if len(message) != KEEPALIVE.size:
                self._stop(runner, lapsed=True)
            (until,) = KEEPALIVE.unpack(message)
        return until

    def _stop(
        self, runner: int, *, status: int | None = None, excess: str = "", lapsed: bool = False
    ) -> NoReturn:
        """End all processes, since only what has ended tells what it used, and report."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        killed = _reap(0).get(runner)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = ExitReport(
            status=killed if status is None else status,
            cpu_seconds=used.ru_utime + used.ru_stime,
            peak_ram_mb=used.ru_maxrss / 1024,
            excess=excess,
            lapsed=lapsed,
        )
        self._end(report)

    def _end(self, report: ExitReport) -> NoReturn:
        with contextlib.suppress(OSError):
            self._lifeline.send(report.encode(), socket.MSG_DONTWAIT)
        os._exit(_EXITED)


def _wake_at_child() -> int:
    """Return a descriptor that is readable after a child has ended."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Python's own handler would let a step interrupt this process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return reading


def _ready(poll: select.poll, seconds: float) -> set[int]:
    """Return the descriptors that are ready within this time."""
    found = poll.poll(None if seconds == math.inf else max(math.ceil(seconds * 1000), 0))
    return {descriptor for descriptor, _ in found}


def _reap(options: int = os.WNOHANG) -> dict[int, int]:
    """Reap all children that have ended, orphans included; return their statuses."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, options)
            if pid == 0:
                break
            found[pid] = status
    return found
