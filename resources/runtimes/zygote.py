"""The worker's side of its zygote (`isolane.zygote`): started when first needed, replaced when it dies or grows.

Timing: a fork is answered within milliseconds; a start takes as long as the packages take to import.
Model: any thread, one request at a time.
Guarantee: nothing of the worker reaches it but what a request carries; without the worker it ends.
Failure: RuntimeStartError; one that died or does not answer is replaced, and the caller may ask again (ZygoteGone).
"""

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import isolane
from isolane.preload import ONE_THREAD
from isolane.sandbox.report import ExitReport
from isolane.zygote import MESSAGE_BYTES
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.folder import folder_name
from resources.runtimes.interpreter import zygote_program

# Everything else, credentials in particular, stays with the worker.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", *ONE_THREAD)
_SOURCE_ROOT = Path(isolane.__file__).resolve().parent.parent
_START_SECONDS = 60.0  # to import all packages
_ANSWER_SECONDS = 10.0  # for a fork
_STOP_SECONDS = 5.0
_STDERR_MAX = 2_000  # bytes
_LOOK_EVERY = 100  # forks between two looks at its size
_GROWTH_MAX_KB = 64 * 1024
_GONE = "the zygote does not answer"
logger = logging.getLogger(__name__)


class ZygoteOptions(NamedTuple):
    """The imports of a zygote, and the paths that its sandboxes hide."""

    packages: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        packages: Sequence[str],
        tasks: Sequence[str],
        paths: Sequence[str | Path],
        hidden: Sequence[str | Path],
    ) -> "ZygoteOptions":
        """Build them from sequences of any kind."""
        return cls(tuple(packages), tuple(tasks), tuple(map(str, paths)), tuple(map(str, hidden)))


class LatePackage(NamedTuple):
    """A package that must not be imported before a fork, so that each runner imports it by itself."""

    name: str
    left: str  # by its import, in words
    seconds: float  # that the import took
    places: tuple[str, ...] = ()  # of its files, and of all that it has imported


class ForkedProcess(NamedTuple):
    """A runner, or the guard of one."""

    pid: int
    pidfd: int
    zygote: "ZygoteProcess"
    stderr_from: int = 0  # where its own words begin


class SandboxRefused(RuntimeStartError):
    """The kernel refused a step of the set-up."""

    def __init__(self, report: ExitReport) -> None:
        super().__init__(f"the sandbox cannot be built: {report.reason}")
        self.report = report


class ZygoteGone(RuntimeStartError):
    """The zygote died or does not answer; another one may be asked, but not with the same descriptors."""


class ZygoteProcess:
    """One process; ended once it is retired and none of its runners is left."""

    def __init__(self, options: ZygoteOptions, late: Sequence[LatePackage]) -> None:
        self._lock = threading.Lock()
        self._living = 0
        self._is_retired = False
        self._forks = 0
        with contextlib.ExitStack() as undo:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.callback(self._control.close)
            with theirs:
                self._stderr = undo.enter_context(tempfile.TemporaryFile())
                self._process = _spawn(theirs, _arguments(options, late), self._stderr.fileno())
            undo.pop_all()
        self._size_kb = 0
        self._last_words = b""

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def hello(self) -> dict[str, Any]:
        """Return its first message, which comes when the packages are imported; or raise RuntimeStartError."""
        try:
            message = self._receive(_START_SECONDS)[0]
        except ZygoteGone:
            code = self._process.poll()
            details = self.stderr_text() or f"exit code {code}"
            raise RuntimeStartError(f"the zygote did not start: {details}") from None
        self._size_kb = _private_kb(self.pid)
        found: dict[str, Any] = json.loads(message)
        return found

    def fork(self, request: bytes, descriptors: Sequence[int]) -> ForkedProcess:
        """Fork one runner, or raise."""
        stderr_from = os.fstat(self._stderr.fileno()).st_size
        try:
            socket.send_fds(self._control, [request], descriptors)
        except (ConnectionError, TimeoutError):
            raise ZygoteGone(_GONE) from None
        message, received = self._receive(_ANSWER_SECONDS)
        answer = json.loads(message)
        if "pid" not in answer:
            report = ExitReport.decode(message)
            if report.step == "fork":
                raise RuntimeStartError(f"the zygote cannot fork: {report.reason}")
            raise SandboxRefused(report)
        if (
            not received
        ):  # it did not fit in here; the runner ends with the descriptors that it was sent
            raise RuntimeStartError("too many files are open in the worker")
        with self._lock:
            self._living += 1
            self._forks += 1
        return ForkedProcess(answer["pid"], received[0], self, stderr_from)

    def is_alive(self) -> bool:
        """Say whether it lives, and so keeps the process ids of its dead runners from being given again."""
        return self._process.poll() is None

    def has_grown(self) -> bool:
        """Say whether it has become much larger than it was at first; looked at now and then."""
        return (
            self._forks % _LOOK_EVERY == 0
            and _private_kb(self.pid) > self._size_kb + _GROWTH_MAX_KB
        )

    def forget_one(self) -> None:
        """Note that one of its runners is gone."""
        with self._lock:
            self._living -= 1
            is_over = self._is_retired and self._living == 0
        if is_over:
            self.kill()

    def retire(self) -> None:
        """End it as soon as none of its runners is left."""
        with self._lock:
            self._is_retired = True
            is_over = self._living == 0
        if is_over:
            self.kill()

    def kill(self) -> None:
        """End it at once, and its sandboxes with it. Repeatable."""
        self.interrupt()
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        if not self._stderr.closed:
            self._last_words = os.pread(self._stderr.fileno(), _STDERR_MAX, 0)
            self._stderr.close()

    def interrupt(self) -> None:
        """Let a thread that waits for its answer find it dead."""
        self._process.kill()

    def stderr_text(self, start: int = 0) -> str:
        """Return what it or its runners wrote to stderr from there on before they served, normally nothing."""
        with contextlib.suppress(OSError, ValueError):  # it is closed, and was read before
            return _text(os.pread(self._stderr.fileno(), _STDERR_MAX, start))
        return _text(self._last_words[start:])

    def _receive(self, seconds: float) -> tuple[bytes, list[int]]:
        self._control.settimeout(seconds)
        try:
            message, descriptors, _, _ = socket.recv_fds(
                self._control, MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            raise ZygoteGone(_GONE) from None
        if not message:
            raise ZygoteGone(_GONE)
        return message, descriptors


class Zygote:
    """The zygote of this worker, whichever process it is at the moment."""

    def __init__(self, options: ZygoteOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._process: ZygoteProcess | None = None
        self._starting: ZygoteProcess | None = None  # not known to import everything yet
        self._is_stopped = False
        self._late: tuple[LatePackage, ...] = ()
        self.users: set[object] = set()

    @property
    def late(self) -> tuple[LatePackage, ...]:
        """Return the packages that each runner imports by itself; known once it has started."""
        return self._late

    @property
    def pid(self) -> int | None:
        """Return its process id, if there is one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it unless it runs, or raise RuntimeStartError."""
        with self._lock:
            self._running()

    def fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> ForkedProcess:
        """Fork one runner, or raise RuntimeStartError."""
        message = json.dumps(request).encode()
        with self._lock:
            try:
                return self._running().fork(message, descriptors)
            except ZygoteGone:
                self._replace()
                raise

    def stop(self) -> None:
        """End it, and its sandboxes with it; another one does not start."""
        self._is_stopped = True
        if (starting := self._starting) is not None:
            starting.interrupt()  # a start would hold the lock for as long as the imports take
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process = None

    def _running(self) -> ZygoteProcess:
        if self._process is not None and self._process.has_grown():
            logger.warning(
                "the zygote has grown; another one starts", extra={"event": "ZYGOTE_GROWN"}
            )
            self._process.retire()
            self._process = None
        if self._process is None:
            self._process = self._started()
        return self._process

    def _replace(self) -> None:
        """Let another one start; one that is only slow lives until its last runner has ended."""
        logger.warning("the zygote is gone; another one starts", extra={"event": "ZYGOTE_GONE"})
        if self._process is not None:
            (self._process.retire if self._process.is_alive() else self._process.kill)()
            self._process = None

    def _started(self) -> ZygoteProcess:
        """Start one; each time that a package leaves something, another one that leaves it to the runners."""
        while True:
            try:
                process = ZygoteProcess(self._options, self._late)
            except OSError as error:
                raise RuntimeStartError(f"the zygote cannot be started: {error}") from error
            with _ended_unless_kept(process) as keep:
                self._starting = process
                if self._is_stopped:
                    raise RuntimeStartError("the worker stops")
                hello = process.hello()
                if "error" in hello:
                    raise RuntimeStartError(hello["error"])
                if "versions" in hello:
                    keep()
                    return process
            late = hello["late"]
            self._late += (LatePackage(**late | {"places": tuple(late["places"])}),)


@contextlib.contextmanager
def _ended_unless_kept(process: ZygoteProcess) -> Iterator[Any]:
    with contextlib.ExitStack() as undo:
        undo.callback(process.kill)
        yield undo.pop_all


# The zygotes of this process, by what they import: the levels of a worker share one.
_zygotes: dict[ZygoteOptions, Zygote] = {}
_zygotes_lock = threading.Lock()


def share_zygote(options: ZygoteOptions, user: object) -> Zygote:
    """Return the zygote of this process with these options; `release_zygote` ends it after its last user."""
    with _zygotes_lock:
        zygote = _zygotes.setdefault(options, Zygote(options))
        zygote.users.add(user)
        return zygote


def release_zygote(zygote: Zygote, user: object) -> None:
    """Stop a zygote unless another level still uses it. Repeatable."""
    with _zygotes_lock:
        zygote.users.discard(user)
        if zygote.users:
            return
        for options in [options for options, found in _zygotes.items() if found is zygote]:
            del _zygotes[options]
    zygote.stop()


def _arguments(options: ZygoteOptions, late: Sequence[LatePackage]) -> list[str]:
    return [
        *(f"--path={Path(path).resolve()}" for path in options.paths),
        *(f"--package={package}" for package in options.packages),
        *(f"--tasks={package}" for package in options.tasks),
        *(f"--late={package.name}" for package in late),
        *(
            f"--show={place}"
            for place in sorted({place for package in late for place in package.places})
        ),
        *(f"--hide={Path(path).resolve()}" for path in options.hidden),
    ]


def _spawn(sock: socket.socket, arguments: list[str], stderr: int) -> "subprocess.Popen[bytes]":
    program = zygote_program()
    # -P: nothing is imported from the working directory.
    command = [sys.executable, "-P", "-m", "isolane.zygote", f"--fd={sock.fileno()}", *arguments]
    return subprocess.Popen(  # noqa: S603 - the command is ours, the names an operator's
        command,
        executable=program.path,
        pass_fds=[sock.fileno(), *program.descriptors],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        cwd="/",
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # Each runner writes the name of its own folder over this one, which is as long.
    folder = folder_name()
    return inherited | {"PYTHONPATH": str(_SOURCE_ROOT), "HOME": folder, "TMPDIR": folder}


def _text(written: bytes) -> str:
    return written.decode("utf-8", "replace").strip()


def _private_kb(pid: int) -> int:
    """Return its anonymous memory; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0
