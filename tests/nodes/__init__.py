"""Nodes that behave well and badly, for tests with real runtimes."""
# ruff: noqa: T201 - what becomes of prints is tested

import asyncio
import contextlib
import contextvars
import ctypes
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from isolane import NodeContext, StepError, node

_variable: contextvars.ContextVar[str] = contextvars.ContextVar("_variable", default="unset")


@node("test.identity", idempotent=True)
def identity(ctx: NodeContext) -> dict[str, Any]:
    """Return all that the context says about the step."""
    return {
        "pid": os.getpid(),
        "execution_id": ctx.execution_id,
        "tenant_id": ctx.tenant_id,
        "user_id": ctx.user_id,
        "request_id": ctx.request_id,
        "epoch": ctx.epoch,
        "step": ctx.step,
        "attempt": ctx.attempt,
        "idempotency_key": ctx.idempotency_key,
        "random": ctx.random.random(),
        "remaining": ctx.deadline - time.monotonic(),
        "cancelled": ctx.cancelled,
    }


@node("test.leave_traces")
def leave_traces(ctx: NodeContext) -> None:
    """Leave behind what a careless step leaves behind."""
    os.environ["TRACE"] = ctx.tenant_id
    _variable.set(ctx.tenant_id)
    Path("trace.txt").write_text(ctx.tenant_id)
    (Path.home() / "folder").mkdir()
    os.chdir("/")


@node("test.find_traces")
def find_traces(ctx: NodeContext) -> dict[str, Any]:
    """Look for what an earlier step left behind."""
    return {
        "environ": os.environ.get("TRACE"),
        "variable": _variable.get(),
        "files": sorted(path.name for path in Path.home().iterdir()),
        "in_home": Path.cwd() == Path.home(),
    }


@node("test.environment")
def environment(ctx: NodeContext) -> dict[str, str]:
    """Return the environment as the step, and a program that it starts, see it."""
    shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return {
        "environ": "\n".join(f"{name}={value}" for name, value in os.environ.items()),
        "env": shown,
        "block": Path("/proc/self/environ").read_text().replace("\0", "\n"),
    }


@node("test.descriptors")
def descriptors(ctx: NodeContext) -> list[str]:
    """Return what the open descriptors beyond the standard ones are."""
    return [target for number, target in _descriptors().items() if number > 2]


@node("test.add")
async def add(ctx: NodeContext, *, a: int, b: int = 1) -> int:
    """Add after a turn of the event loop."""
    await asyncio.sleep(0)
    return a + b


@node("test.loop")
async def loop(ctx: NodeContext) -> int:
    """Return which event loop this is."""
    return id(asyncio.get_running_loop())


@node("test.speak")
def speak(ctx: NodeContext) -> None:
    """Print and log in every way there is."""
    print("printed\nand more")
    print("on stderr", file=sys.stderr)
    logging.getLogger("shop").error("logged %s", "well")
    ctx.log("by context", level="debug")
    ctx.progress(0.5, "half")
    ctypes.CDLL(None).puts(b"from C")
    os.write(1, b"raw bytes")
    sys.stdout.write("no end")


@node("test.shout")
def shout(ctx: NodeContext) -> None:
    """Print until killed."""
    while True:
        print("x" * 1000)


@node("test.say")
def say(ctx: NodeContext, *, lines: int) -> None:
    """Print some lines."""
    for _ in range(lines):
        print("x")


@node("test.speak_from_fork")
def speak_from_fork(ctx: NodeContext) -> int:
    """Print from a forked process, which must not reach the stream."""
    pid = os.fork()  # noqa: TID251 - what a step may do
    if pid == 0:
        print("from the fork")
        os._exit(0)
    return os.waitpid(pid, 0)[1]


@node("test.sleep")
def sleep(ctx: NodeContext, *, seconds: float, pid_file: str | None = None) -> str:
    """Sleep without looking at the context, after starting a child if it shall be noted."""
    if pid_file is not None:
        child = subprocess.Popen(["sleep", "60"])
        Path(pid_file).write_text(f"{os.getpid()} {child.pid}\n")
    time.sleep(seconds)
    return "slept"


@node("test.until_cancelled")
def until_cancelled(ctx: NodeContext, *, succeed: bool) -> str:
    """Stop when asked to."""
    ctx.progress(0.1, "waiting")
    while not ctx.cancelled:
        time.sleep(0.01)
    if not succeed:
        raise StepError("TRANSIENT_ERROR", "stopped")
    return "finished"


@node("test.raise_error")
def raise_error(ctx: NodeContext, *, kind: str) -> None:
    """Raise in many ways."""
    if kind == "step":
        raise StepError("RATE_LIMIT_ERROR", "slow down")
    errors = {"exit": SystemExit, "interrupt": KeyboardInterrupt, "value": ValueError}
    raise errors[kind]("password=hunter2")


@node("test.output")
def output(ctx: NodeContext, *, kind: str) -> Any:
    """Return what cannot be kept."""
    return {"large": "x" * 2**20, "set": {1}, "nul": "\x00", "nan": float("nan")}[kind]


@node("test.variables")
def variables(ctx: NodeContext, *, changes: dict[str, Any], fail: bool = False) -> dict[str, Any]:
    """Return the run's variables, then change some."""
    found = dict(ctx.memory)
    ctx.memory.update(changes)
    ctx.pause(60)
    if fail:
        raise StepError("TRANSIENT_ERROR", "after all")
    return found


@node("test.cost")
def cost(ctx: NodeContext, *, times: int) -> None:
    """Report costs."""
    for _ in range(times):
        ctx.cost("tokens", 812)


@node("test.raise_later")
async def raise_later(ctx: NodeContext) -> None:
    """Raise from a function below, on the event loop."""
    await asyncio.sleep(0)
    _explode()


def _explode() -> None:
    raise ValueError("password=hunter2")


@node("test.exit")
def exit_at_once(ctx: NodeContext, *, code: int) -> None:
    """Leave without a word."""
    os._exit(code)


@node("test.exit_behind_orphan")
def exit_behind_orphan(ctx: NodeContext) -> None:
    """Leave without a word while a program keeps the stream open."""
    subprocess.Popen(["sleep", "60"], pass_fds=_pipes())
    os.kill(os.getpid(), signal.SIGKILL)


@node("test.write_to_stream")
def write_to_stream(ctx: NodeContext, *, data: str) -> None:
    """Forge bytes on the stream."""
    for number in _pipes():
        with contextlib.suppress(OSError):  # one to read from
            os.write(number, bytes.fromhex(data))
    time.sleep(60)


@node("test.leave_thread")
def leave_thread(ctx: NodeContext) -> None:
    """Leave a thread behind that goes on printing."""

    def chatter() -> None:
        while True:
            print("still here")
            time.sleep(0.001)

    threading.Thread(target=chatter, name="chatter").start()


@node("test.leave_process")
def leave_process(ctx: NodeContext) -> int:
    """Leave a process behind."""
    return subprocess.Popen(["sleep", "60"]).pid


@node("test.daemonize")
def daemonize(ctx: NodeContext, *, pid_file: str, seconds: float = 0.0) -> None:
    """Leave a process behind that left parent, session and group, and sleep then."""
    child = os.fork()  # noqa: TID251 - what a step may do
    if child == 0:
        os.setsid()
        if os.fork() == 0:  # noqa: TID251
            Path(pid_file).write_text(f"{os.getpid()}\n")
            os.execvp("sleep", ["sleep", "60"])
        os._exit(0)
    os.waitpid(child, 0)
    while not (Path(pid_file).exists() and Path(pid_file).read_text().endswith("\n")):
        time.sleep(0.01)
    time.sleep(seconds)


@node("test.patch_module")
def patch_module(ctx: NodeContext) -> None:
    """Change a global of a module that all steps of the process share."""
    tempfile.template = ctx.tenant_id


@node("test.read_module")
def read_module(ctx: NodeContext) -> str:
    """Return that global."""
    return tempfile.template


@node("test.on_close")
def on_close(ctx: NodeContext, *, file: str, fail: bool = False) -> None:
    """Write to a file when the context closes, in two callbacks."""
    path = Path(file)

    def write(text: str) -> None:
        with path.open("a") as stream:
            stream.write(text)

    ctx.on_close(lambda: write("first registered\n"))
    if fail:
        ctx.on_close(lambda: 1 // 0)
    ctx.on_close(lambda: write("last registered\n"))


@node("test.print_on_close")
def print_on_close(ctx: NodeContext) -> None:
    """Begin a line in the teardown and do not end it."""
    ctx.on_close(lambda: print(ctx.tenant_id, end=""))


@node("test.hang_on_close")
def hang_on_close(ctx: NodeContext) -> None:
    """Register a callback that does not return."""
    ctx.on_close(lambda: time.sleep(60))


def _pipes() -> list[int]:
    """Return those that are not the step's own output: the stream among them."""
    return [
        number
        for number, target in _descriptors().items()
        if target.startswith("pipe:") and number not in (1, 2)
    ]


def _descriptors() -> dict[int, str]:
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one of this very listing
            found[int(link.name)] = str(link.readlink())
    return found


@node("test.leave_folders")
def leave_folders(ctx: NodeContext, *, levels: int) -> None:
    """Leave directories in each other, as an archive may have them."""
    for _ in range(levels):
        os.mkdir("d")  # noqa: PTH102 - often
        os.chdir("d")


@node("test.die_on_close")
def die_on_close(ctx: NodeContext, *, number: int) -> None:
    """End by a signal while the context is torn down."""
    ctx.on_close(lambda: os.kill(os.getpid(), number))
