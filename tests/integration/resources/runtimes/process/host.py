"""`python -m tests.integration.resources.runtimes.process.host`: attacks sandboxes, and prints what came of it.

It reads the names of probes and attacks as JSON, and names of probes by the wall that is left out for them. A neighbour
of another tenant works all the time, and after each attack a further run must be as ever.
"""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from isolane.limits import RunLimits
from isolane.protocol import Run
from isolane.results import StepResult
from isolane.sandbox.spec import Wall
from resources.runtimes.base import OnFrame, RunIdentity, Runtime
from resources.runtimes.process import ProcessBackend, ProcessRuntime
from resources.runtimes.sandbox import ALL_WALLS
from tests.placements import a_placement

NODES = "tests.integration.resources.runtimes.process.hostile_nodes"
LIMITS = RunLimits(ram_mb=96, processes=32, disk_mb=16, open_files=64, cpu=1.0, seconds=60.0)
SPECIAL = {
    "ram_of_files": replace(LIMITS, disk_mb=1024),
    "burn_processor_time": replace(LIMITS, cpu=0.2, seconds=1.0),
    "burn_processor_time_and_ignore_the_signal": replace(LIMITS, cpu=0.2, seconds=1.0),
}
SECONDS = {  # until the deadline, for attacks that only that ends
    "fork_bomb": 0.7,
    "stop_itself": 0.5,
    "write_half_a_frame": 0.5,
}
BURNING = {"burn_processor_time", "burn_processor_time_and_ignore_the_signal"}
BURNING_SECONDS = (
    1.6  # where the run is slowed down; elsewhere it is ended when it has used its time
)
LONG = 20.0
MOST_SECONDS = 100.0  # for all of it, on a slow machine
ROOT = Path(__file__).parents[5]
AT_ONCE = 4
GUARD_AND_RUNNER = 2
SECRET = "the platform's secret"
TENANTS = {"acme": 1, "globex": 2}


class Sandboxes:
    """Runs single steps, each in a new sandbox."""

    def __init__(self, backend: ProcessBackend) -> None:
        self._backend = backend
        cgroups = backend.cgroups.cgroups
        self.counted = sorted(cgroups.kept) if cgroups else []

    def run(
        self,
        uses: str,
        parameters: dict[str, Any],
        *,
        tenant: str = "acme",
        limits: RunLimits = LIMITS,
        seconds: float = LONG,
        cancelled: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Return the result, and what the run used."""
        frames: list[Any] = []
        began = time.monotonic()
        placement = a_placement(f"{tenant} {uses} {parameters}", tenant_id=TENANTS[tenant])
        runtime = self._backend.start(placement, identity=RunIdentity(tenant=tenant), limits=limits)
        try:
            runtime.open()
            if seconds < LONG:  # the time for building the sandbox is not the attack's
                _ended(runtime, _run("hostile.descriptors", {}, LONG))
            run = _run(uses, parameters, seconds)
            result = _ended(runtime, run, cancelled=cancelled, on_frame=frames.append)
        finally:
            runtime.close(5)
        return _told(result) | {
            "cpu_seconds": runtime.usage.cpu_seconds,
            "seconds": time.monotonic() - began,
            "frames": len(frames),
        }

    def users(self, count: int) -> list[list[int]]:
        """Return the users outside of all processes of so many sandboxes at the same time."""
        with contextlib.ExitStack() as stack:
            found = []
            for number in range(count):
                placement = a_placement(f"user {number}", tenant_id=TENANTS["acme"])
                identity = RunIdentity(tenant="acme")
                runtime = self._backend.start(placement, identity=identity, limits=LIMITS)
                stack.callback(runtime.close, 5)
                runtime.open()
                runtime.run(
                    _run("hostile.descriptors", {}, LONG),
                    deadline=time.monotonic() + LONG,
                    cancelled=threading.Event(),
                    on_frame=lambda _: None,
                )
                assert isinstance(runtime, ProcessRuntime)
                guard = psutil.Process(runtime._child.pid)
                found.append([guard, *guard.children()])
            assert all(len(processes) == GUARD_AND_RUNNER for processes in found)
            return [
                sorted({user for process in processes for user in process.uids()})
                for processes in found
            ]

    def attack(self, name: str) -> dict[str, Any]:
        """Attack, then let the other tenant run."""
        told = self.run(
            "hostile.attack",
            {"name": name},
            limits=SPECIAL.get(name, LIMITS),
            seconds=self._seconds(name),
        )
        after = self.run("hostile.descriptors", {}, tenant="globex")
        return told | {"after": after["status"]}

    def _seconds(self, name: str) -> float:
        if name in BURNING and "cpu" in self.counted:
            return BURNING_SECONDS
        return SECONDS.get(name, LONG)


def _run(uses: str, parameters: dict[str, Any], seconds: float) -> Run:
    return Run(
        step="attack",
        uses=uses,
        parameters=parameters,
        variables={},
        attempt=0,
        seed=7,
        timeout_s=seconds,
        idempotency_key="key",
    )


def _ended(
    runtime: Runtime,
    run: Run,
    *,
    cancelled: threading.Event | None = None,
    on_frame: OnFrame = lambda _: None,
) -> StepResult:
    return runtime.run(
        run,
        deadline=time.monotonic() + run.timeout_s,
        cancelled=cancelled or threading.Event(),
        on_frame=on_frame,
    )


def _told(result: StepResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "code": result.code,
        "message": result.message,
        "cause": result.cause,
        "output": result.output,
    }


@contextlib.contextmanager
def surroundings(home: Path) -> Iterator[dict[str, Any]]:
    """Make what no sandbox may reach, open to every user of the machine."""
    with contextlib.ExitStack() as stack:
        servers = {
            "tcp": stack.enter_context(_bound(socket.AF_INET, ("127.0.0.1", 0))),
            "udp": stack.enter_context(_bound(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)),
            "unix": stack.enter_context(_bound(socket.AF_UNIX, str(home / "platform.sock"))),
            "abstract": stack.enter_context(_bound(socket.AF_UNIX, f"\0isolane-{os.getpid()}")),
        }
        (home / "platform.sock").chmod(0o777)
        heard: list[str] = []
        for name, server in servers.items():
            threading.Thread(target=_serve, args=(name, server, heard), daemon=True).start()
        for folder in (home / "nodes" / ".isolane", home / "isolane-runtime-other"):
            folder.mkdir(parents=True)
            (folder / "secret").write_text(SECRET)
        yield {
            "tcp": servers["tcp"].getsockname()[1],
            "udp": servers["udp"].getsockname()[1],
            "unix": str(home / "platform.sock"),
            "abstract": f"isolane-{os.getpid()}",
            "secret": str(home / "nodes" / ".isolane" / "secret"),
            "other_run": str(home / "isolane-runtime-other" / "secret"),
            "source": str(ROOT / "manage.py"),
            "worker": os.getpid(),
            "processes": LIMITS.processes,
            "open_files": LIMITS.open_files,
            "heard": heard,
        }


def _bound(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
    sock = socket.socket(family, kind)
    sock.bind(address)
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock


def _serve(name: str, server: socket.socket, heard: list[str]) -> None:
    """Answer whoever comes, and note it."""
    with contextlib.suppress(OSError):
        while True:
            if server.type == socket.SOCK_DGRAM:
                _, peer = server.recvfrom(64)
                server.sendto(b"welcome", peer)
            else:
                client, _ = server.accept()
                client.send(b"welcome")
                client.close()
            heard.append(name)


class Neighbour:
    """Another tenant's run, as long as the attacks last."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._cancelled = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._told = self._pool.submit(
            sandboxes.run,
            "hostile.neighbour",
            {"token": "mine"},
            tenant="globex",
            seconds=MOST_SECONDS,
            cancelled=self._cancelled,
        )

    def end(self) -> dict[str, Any]:
        """Let it end, and return how it did."""
        self._cancelled.set()
        with self._pool:
            return self._told.result()


def report(asked: dict[str, Any], home: Path) -> dict[str, Any]:
    """Do all that was asked, and return what came of it."""
    with surroundings(home) as facts:
        heard = facts.pop("heard")
        with _backend(ALL_WALLS, home / "nodes") as backend:
            sandboxes = Sandboxes(backend)
            neighbour = Neighbour(sandboxes)
            try:
                told = _attacked(sandboxes, asked, facts)
            finally:
                told_by_neighbour = neighbour.end()
            told |= {"user": os.geteuid(), "users": sandboxes.users(3)}
            left = _left(backend.zygote.pid)
            told |= {"heard": list(heard), "neighbour": told_by_neighbour, "left": left}
            weakened = {
                wall: _weakened(wall, names, facts, home) for wall, names in asked["walls"].items()
            }
        return told | {"weakened": weakened}


def _attacked(sandboxes: Sandboxes, asked: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        attacks = pool.map(sandboxes.attack, asked["attacks"])
        return {
            "counted": sandboxes.counted,
            "descriptors": sandboxes.run("hostile.descriptors", {})["output"],
            "probes": sandboxes.run("hostile.probe", {"names": asked["probes"], "facts": facts}),
            "attacks": dict(zip(asked["attacks"], attacks, strict=True)),
        }


def _weakened(wall: str, names: list[str], facts: dict[str, Any], home: Path) -> dict[str, Any]:
    # Without its own mounts a sandbox would count the processes and files of the machine as its own.
    limits = replace(LIMITS, ram_mb=None)
    with _backend(ALL_WALLS - {Wall(wall)}, home / "nodes", limits) as backend:
        parameters = {"names": names, "facts": facts}
        return Sandboxes(backend).run("hostile.probe", parameters, limits=limits)


@contextlib.contextmanager
def _backend(
    standing: frozenset[Wall], nodes: Path, limits: RunLimits = LIMITS
) -> Iterator[ProcessBackend]:
    class Backend(ProcessBackend):
        walls = standing

    backend = Backend(
        level="process",
        size=AT_ONCE + 2,
        packages=[NODES],
        paths=[nodes],
        hidden=[nodes / ".isolane"],
        limits=limits,
    )
    try:
        found = backend.availability()
        assert found.ok, found.reason
        yield backend
    finally:
        backend.stop()


def _left(zygote: int | None) -> list[str]:
    """Return the processes below this one that are not the zygote; those of sandboxes are below that."""
    return [
        f"{process.pid} {process.name()}"
        for process in psutil.Process().children(recursive=True)
        if process.pid != zygote
    ]


def main() -> None:
    """Read, attack, print."""
    asked = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        Path(home).chmod(0o755)
        json.dump(report(asked, Path(home)), sys.stdout)


if __name__ == "__main__":
    main()
