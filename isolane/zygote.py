"""`python -P -m isolane.zygote --fd N …`: imports the packages once, then forks a runner in milliseconds.

Messages come over a socket of packets from the worker, each with the descriptors of one runner: its stream, its
lifeline and, for a sandbox, its gate channel. The zygote answers with the process id and a pidfd, and later sends an
exit report over the lifeline. A dead runner that shares the machine's process ids is reaped only when the worker has
closed its end, so that its id is not another process's meanwhile.

Timing: a fork takes some milliseconds, with namespaces some more.
Model: one process, one thread; exec'd with a clean environment, never forked from the worker.
Guarantee: a runner gets its own stream and no descriptor of the worker or of another runner.
Failure: without its worker it ends, and sandboxes with it; a fork that fails is answered with the reason.
"""

import argparse
import base64
import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from isolane.channel import Channel
from isolane.descendants import adopt_orphans
from isolane.discovery import DiscoveryError, NodeSource, node_sources
from isolane.environment_block import find_variables
from isolane.node import default_registry
from isolane.preload import ImportLeft, preload
from isolane.privileges import (
    CAP_SETGID,
    CAP_SETPCAP,
    CAP_SETUID,
    drop_capabilities,
    set_dumpable,
)
from isolane.providers.registry import import_drivers
from isolane.runner import EXIT_PACKAGE, serve
from isolane.sandbox.clone import NEWIPC, NEWNET, NEWNS, NEWPID, NEWUSER, NEWUTS, clone, map_user
from isolane.sandbox.guard import Guard
from isolane.sandbox.report import ExitReport
from isolane.sandbox.spec import SandboxSpec, Wall
from isolane.sandbox.syscalls import SetupError
from isolane.sandbox.view import INSIDE_ID, View, view_of
from isolane.text import MESSAGE_MAX, storable

MESSAGE_BYTES = 256 * 1024
_DESCRIPTORS = 16  # at most, of one message
_STDERR = 2
_NAMESPACES = NEWUSER | NEWPID | NEWNS | NEWIPC | NEWUTS


@dataclass(kw_only=True)
class Forked:
    """A living runner, or a dead one that is not reaped yet."""

    lifeline: socket.socket
    is_sandbox: bool
    is_reported: bool = False  # the worker knows that it is dead
    is_released: bool = False  # the worker no longer needs it


class ForkServer:
    """Forks runners on request."""

    def __init__(
        self,
        control: socket.socket,
        *,
        versions: dict[str, str],
        late: Sequence[NodeSource],
        view: View,
    ) -> None:
        self._control = control
        self._versions = versions
        self._late = late
        self._view = view
        self._homes = find_variables(("HOME", "TMPDIR"))
        self._driven: set[str] = set()  # types of resources whose drivers are imported
        self._forked: dict[int, Forked] = {}
        self._pids: dict[int, int] = {}  # by the descriptor of their lifeline
        self._poll = select.poll()
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> NoReturn:
        """Fork until the worker is gone."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._poll.register(self._control, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._control.fileno():
                    self._take_request()
                elif descriptor == self._wake:
                    self._notice_deaths()
                elif descriptor in self._pids:
                    self._release(self._pids[descriptor])

    # --- forking
    def _take_request(self) -> None:
        # Programs that steps start must not inherit them.
        message, descriptors, flags, _ = socket.recv_fds(
            self._control, MESSAGE_BYTES, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            os._exit(0)
        if flags & socket.MSG_CTRUNC:
            for descriptor in descriptors:
                os.close(descriptor)
            self._refuse(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            return
        reading, writing, lifeline, *others = descriptors
        with contextlib.ExitStack() as close:
            stream = close.enter_context(Channel(reading, writing))
            line = socket.socket(fileno=lifeline)
            for descriptor in others:
                close.callback(os.close, descriptor)
            try:
                self._answer(*self._fork(json.loads(message), stream, line, others), line)
            except (SetupError, OSError) as error:
                line.close()
                self._refuse(error)

    def _refuse(self, error: SetupError | OSError) -> None:
        step = getattr(error, "step", "fork")
        failure = ExitReport(step=step, errno=error.errno or 0, reason=str(error))
        self._control.send(failure.encode())

    def _fork(
        self, request: dict[str, Any], stream: Channel, line: socket.socket, others: list[int]
    ) -> tuple[int, bool]:
        if (fields := request.get("sandbox")) is None:
            return self._fork_shared(request["folder"], stream, line), False
        self._import_drivers(request["types"])
        spec, program = SandboxSpec.decode(fields), base64.b64decode(request["program"])
        gate, joins = others[:2], others[2:]
        guard = Guard(spec, self._view, program, line, joins)
        return self._fork_sandbox(guard, spec, stream, gate), True

    def _import_drivers(self, types: Sequence[str]) -> None:
        """Import them once for all runs to come: that takes longer than a run."""
        if new := set(types) - self._driven:
            for each in sorted(new):
                import_drivers(each)
            self._driven |= new
            gc.collect()
            gc.freeze()

    def _answer(self, pid: int, is_sandbox: bool, line: socket.socket) -> None:  # noqa: FBT001 - as it came
        try:
            pidfd = os.pidfd_open(pid)
            try:
                socket.send_fds(self._control, [json.dumps({"pid": pid}).encode()], [pidfd])
            finally:
                os.close(pidfd)
        except OSError:  # nobody would know of it
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        self._forked[pid] = Forked(lifeline=line, is_sandbox=is_sandbox)
        if not is_sandbox:  # the worker's end of a sandbox's is watched by its guard
            self._pids[line.fileno()] = pid
            self._poll.register(line, 0)  # only its end

    def _fork_shared(self, folder: str, stream: Channel, line: socket.socket) -> int:
        pid = os.fork()  # noqa: TID251 - one thread, and meant to be a copy
        if pid != 0:
            return pid
        try:
            self._leave()
            line.close()
            os.setsid()
            set_dumpable(dumpable=True)
            drop_capabilities()
            adopt_orphans()
            for variable in self._homes:
                variable.overwrite(folder)
            os.environ.update(HOME=folder, TMPDIR=folder)
            os.chdir(folder)
            serve(stream, versions=self._versions, late=self._late)
        finally:
            os._exit(1)

    def _fork_sandbox(
        self, guard: Guard, spec: SandboxSpec, stream: Channel, gate: list[int]
    ) -> int:
        mapped, mapping = os.pipe()
        namespaces = _NAMESPACES | (NEWNET if Wall.NET in spec.walls else 0)
        try:
            if (pid := clone(namespaces)) == 0:
                self._become_guard(guard, spec, stream, Channel(*gate), mapped, mapping)
            if spec.outside is not None:
                self._map(pid, spec.outside)
                os.write(mapping, b"1")
        finally:
            os.close(mapped)
            os.close(mapping)
        return pid

    def _become_guard(
        self,
        guard: Guard,
        spec: SandboxSpec,
        stream: Channel,
        gate: Channel,
        mapped: int,
        mapping: int,
    ) -> NoReturn:
        try:
            self._leave()
            os.close(mapping)
            guard.run(
                lambda: serve(stream, versions=self._versions, late=self._late, limits=spec.limits),
                stream=stream,
                gate=gate,
                mapped=mapped,
            )
        finally:
            os._exit(1)

    @staticmethod
    def _map(pid: int, outside: int) -> None:
        try:
            map_user(pid, inside=INSIDE_ID, outside_user=outside, outside_group=outside)
        except SetupError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _leave(self) -> None:
        """In a child: close what is the zygote's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()
        for descriptor in (self._wake, self._waker):
            os.close(descriptor)
        for forked in self._forked.values():
            forked.lifeline.close()

    # --- the end of runners
    def _notice_deaths(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass
        for pid, forked in list(self._forked.items()):
            if forked.is_sandbox:
                self._reap(pid, forked)
            else:
                self._notice_death(pid, forked)

    def _notice_death(self, pid: int, forked: Forked) -> None:
        if forked.is_released:
            self._reap(pid, forked)
        elif not forked.is_reported and (status := _status_of(pid)) is not None:
            forked.is_reported = True
            _send(forked.lifeline, ExitReport(status=status, final=True))

    def _release(self, pid: int) -> None:
        """Reap a runner that the worker no longer needs, at once or when it dies."""
        forked = self._forked[pid]
        self._poll.unregister(forked.lifeline)
        del self._pids[forked.lifeline.fileno()]
        forked.is_released = True
        self._reap(pid, forked)

    def _reap(self, pid: int, forked: Forked) -> None:
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found == 0:
            return
        seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        report = ExitReport(status=status, cpu_seconds=seconds, peak_ram_mb=peak, final=True)
        _send(forked.lifeline, report)
        forked.lifeline.close()
        del self._forked[pid]


def _status_of(pid: int) -> int | None:
    """Return how a child ended, without reaping it; None if it lives."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status


def _send(lifeline: socket.socket, report: ExitReport) -> None:
    with contextlib.suppress(OSError):  # the worker no longer wants to know
        lifeline.send(report.encode(), socket.MSG_DONTWAIT)


def main() -> NoReturn:
    """Import the packages, say so, and fork on request."""
    options = _options()
    _close_others(options.fd)
    control = socket.socket(fileno=options.fd)
    control.set_inheritable(False)
    set_dumpable(dumpable=False)
    if os.geteuid() == 0:
        # Root of a namespace that keeps the groups of its maker may not.
        with contextlib.suppress(PermissionError):
            os.setgroups([])
    drop_capabilities(keep=(CAP_SETGID, CAP_SETUID, CAP_SETPCAP))
    sys.path[:0] = options.path
    sources = node_sources(default_registry, packages=options.package, tasks=options.tasks)
    versions = _preload(control, sources, options.late)
    view = view_of([*sys.path, *options.show], sys.modules, hidden=options.hide)
    gc.collect()
    gc.freeze()
    control.send(json.dumps({"versions": versions}).encode())
    late = [source for source in sources if source.name in options.late]
    ForkServer(control, versions=versions, late=late, view=view).serve()


def _close_others(control: int) -> None:
    """Close all descriptors but the standard ones and this."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only their numbers
        if int(name) > _STDERR and int(name) != control:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.close(int(name))


def _preload(
    control: socket.socket, sources: Sequence[NodeSource], late: Sequence[str]
) -> dict[str, str]:
    try:
        return preload(sources, late=late)
    except DiscoveryError as error:
        _refuse(control, {"error": storable(str(error), MESSAGE_MAX)})
    except ImportLeft as found:
        # The next one does not import it, and would not know where it and what it imports are.
        places = view_of(sys.path, sys.modules).binds
        late_one = {
            "name": found.name,
            "left": found.left,
            "seconds": found.seconds,
            "places": places,
        }
        _refuse(control, {"late": late_one})


def _refuse(control: socket.socket, reason: dict[str, Any]) -> NoReturn:
    control.send(json.dumps(reason).encode())
    os._exit(EXIT_PACKAGE)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="isolane.zygote")
    parser.add_argument("--fd", type=int, required=True, help="inherited socket to the worker")
    parser.add_argument("--path", action="append", default=[], help="folder to import from")
    parser.add_argument("--package", action="append", default=[], help="package with nodes")
    parser.add_argument("--tasks", action="append", default=[], help="package with task functions")
    parser.add_argument("--show", action="append", default=[], help="path that sandboxes show")
    parser.add_argument("--late", action="append", default=[], help="import it after the fork")
    parser.add_argument(
        "--hide", action="append", default=[], help="folder or file that no sandbox shows"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
