"""Nodes that report on the sandbox that they run in, and try to leave something for the next one."""

import contextlib
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from isolane import NodeContext, node

KEPT: dict[
    str, Any
] = {}  # survives a run at `shared`, if the tenant's next run gets the same runner
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
OWN_FILE = Path("/tmp/of-this-run")


@node("sandbox.look")
def look(ctx: NodeContext, *, folder: str) -> dict[str, Any]:
    """Leave a file, say so, wait until others have done the same, and report what is there."""
    OWN_FILE.with_name(f"{OWN_FILE.name}-{ctx.execution_id}").touch()
    ctx.log("here")
    while not (Path(folder) / "go").exists():  # shown, and read-only
        time.sleep(0.02)
    return {
        "namespaces": {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMESPACES},
        "processes": _processes(),
        "files": [file.name for file in OWN_FILE.parent.glob(f"{OWN_FILE.name}*")],
        "interfaces": [line.split(":")[0].strip() for line in _interfaces()],
        "hostname": socket.gethostname(),
        "written": _written([folder, "/usr", "/etc", str(Path(os.__file__).parent)]),
    }


@node("sandbox.leave")
def leave(ctx: NodeContext, *, fails: bool, backwards: str) -> dict[str, Any]:
    """Leave something in every place that a run has, then fail, or tell how often the text is in memory."""
    KEPT["context"], KEPT["client"] = ctx, ctx.resource("web")
    os.environ["LEFT"] = ctx.execution_id
    OWN_FILE.write_text(ctx.execution_id)
    threading.Thread(target=threading.Event().wait, name="left", daemon=True).start()
    if fails:
        raise ValueError("with things left")
    return {"memory": _in_memory([backwards.encode()])}


@node("sandbox.find")
def find(ctx: NodeContext, *, backwards: str) -> dict[str, Any]:
    """Look for what an earlier run has left; the text is searched for in memory."""
    return {
        "module": sorted(KEPT),
        "environment": os.environ.get("LEFT"),
        "file": OWN_FILE.exists(),
        "threads": [thread.name for thread in threading.enumerate() if thread.name == "left"],
        "processes": len(_processes()),
        "memory": _in_memory([backwards.encode()]),
    }


@node("sandbox.visit")
def visit(ctx: NodeContext, *, name: str) -> list[Any]:
    """Ask the declared database, and for the address of a name that is not declared."""
    (answer,) = ctx.resource("shop").execute("select 1 as one").fetchone().values()
    try:
        return [answer, socket.getaddrinfo(name, 80)]
    except socket.gaierror:
        return [answer, "none"]


@node("sandbox.crowd")
def crowd(ctx: NodeContext) -> str:
    """Open a second connection beside the handle's."""
    params = ctx.resource("shop").info
    with socket.create_connection((params.hostaddr, params.port), timeout=5) as second:
        second.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")  # asks a PostgreSQL for TLS
        return "answered" if second.recv(1) else "nothing"


@node("sandbox.take")
def take(ctx: NodeContext, *, what: str) -> None:
    """Take more than a run may have."""
    match what:
        case "ram":
            KEPT["ram"] = b"x" * (512 << 20)
        case "processes":
            KEPT["processes"] = [subprocess.Popen(["sleep", "60"]) for _ in range(100)]
        case "disk":
            OWN_FILE.write_bytes(b"x" * (64 << 20))


@node("sandbox.search")
def search(ctx: NodeContext, *, backwards: list[str], folders: list[str]) -> dict[str, Any]:
    """Search for texts in memory, environment, arguments and readable files, and for these folders."""
    wanted = [text.encode() for text in backwards]
    places = [Path("/proc/self/environ"), Path("/proc/self/cmdline"), Path("/proc/1/environ")]
    places += [path for path in Path("/etc").rglob("*") if path.is_file()]
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            content = place.read_bytes()[::-1]
            found += [str(place) for text in wanted if text in content]
    return {
        "memory": _in_memory(wanted),
        "files": found,
        "folders": [folder for folder in folders if _listed(folder)],
    }


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _interfaces() -> list[str]:
    return Path("/proc/net/dev").read_text().splitlines()[2:]


def _written(folders: list[str]) -> list[str]:
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            (Path(folder) / "written").touch()
            found.append(folder)
    return found


def _listed(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [path.name for path in Path(folder).iterdir()]
    return []


def _in_memory(wanted: list[bytes]) -> list[int]:
    """Count texts in writable pages, freed or not; compared in reverse, so that a text does not find itself."""
    counts = [0] * len(wanted)
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(number, 16) for number in span.split("-"))
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(start)
                    page = memory.read(end - start)[::-1]
                    counts = [n + page.count(text) for n, text in zip(counts, wanted, strict=True)]
    return counts
