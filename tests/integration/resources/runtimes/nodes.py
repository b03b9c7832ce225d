"""Nodes that leave a process other than they found it, or say what is not theirs to say."""

import decimal
import locale
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from typing import Any

from isolane import NodeContext, StepError, node
from isolane.protocol import COSTS_MAX, Cost
from isolane.results import StepResult

_released = threading.Event()
_kept: list[bytes] = []


@node("restless.fail")
def fail(ctx: NodeContext, *, code: str) -> None:
    """Fail with this code."""
    raise StepError(code, "as it says")


@node("restless.overcharge")
def overcharge(ctx: NodeContext) -> None:
    """Report more costs than the context lets it."""
    for _ in range(COSTS_MAX + 1):
        ctx._emit(Cost(step=ctx.step, kind="tokens", amount=1.0, nonce=ctx._nonce))
    time.sleep(60)


@node("restless.use")
def use(ctx: NodeContext) -> None:
    """Ask for a resource."""
    ctx.resource("chat")


@node("restless.hide_handle")
def hide_handle(ctx: NodeContext) -> None:
    """Open a resource, and have the context forget to close it."""
    ctx.resource("chat")
    ctx._execution.handles.context_scope.teardown._undos.clear()


@node("restless.forge_reuse")
def forge_reuse(ctx: NodeContext) -> None:
    """Answer for the session, with a handle that cannot be."""
    result = StepResult.succeeded(step=ctx.step, attempt=ctx.attempt, output=None)
    ctx._emit(replace(result, nonce=ctx._nonce, reused={"no id": "chat"}))


@node("restless.leave_forger")
def leave_forger(ctx: NodeContext, *, with_result: bool) -> None:
    """Leave a thread behind that speaks for the next attempt."""
    _released.clear()  # set by an earlier run in this process, perhaps

    def forge() -> None:
        _released.wait()
        ctx.log("late")
        ctx.progress(0.5)
        ctx.cost("tokens", 1)
        if with_result:
            result = StepResult.succeeded(step=ctx.step, attempt=ctx.attempt, output="forged")
            ctx._emit(result)

    threading.Thread(target=forge).start()


@node("restless.release_forger")
def release_forger(ctx: NodeContext) -> str:
    """Let that thread speak, and wait for it."""
    others = [thread for thread in threading.enumerate() if thread.name.endswith("(forge)")]
    _released.set()
    for thread in others:
        thread.join()
    return "own"


@node("restless.keep")
def keep(ctx: NodeContext, *, megabytes: int) -> None:
    """Keep RAM for ever."""
    _kept.append(b"x" * (megabytes << 20))


@node("restless.leave")
def leave(ctx: NodeContext) -> None:
    """Change what a process has beside its modules."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    signal.alarm(600)
    signal.setitimer(signal.ITIMER_PROF, 600)
    os.umask(0)
    sys.setprofile(lambda *_: None)
    sys.settrace(lambda *_: None)
    sys.path.insert(0, "/nowhere")
    sys.setrecursionlimit(5000)
    decimal.DefaultContext.prec = 5
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    warnings.simplefilter("error")
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger().handlers.clear()
    logging.disable(logging.ERROR)
    sys.stdout = sys.stderr = sys.__stdout__


@node("restless.look")
def look(ctx: NodeContext) -> dict[str, Any]:
    """Return all that."""
    root = logging.getLogger()
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "handlers": [str(signal.getsignal(n)) for n in (signal.SIGUSR1, signal.SIGALRM)],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "timers": [signal.getitimer(n)[0] for n in (signal.ITIMER_REAL, signal.ITIMER_PROF)],
        "umask": mask,
        "tracing": [str(sys.gettrace()), str(sys.getprofile())],
        "path": sys.path,
        "recursion": sys.getrecursionlimit(),
        "precision": decimal.getcontext().prec,
        "locale": locale.setlocale(locale.LC_ALL),
        "warnings": [str(each) for each in warnings.filters],
        "logging": [root.level, [str(each) for each in root.handlers], root.manager.disable],
        "streams": [type(each).__name__ for each in (sys.stdout, sys.stderr)],
    }


@node("restless.write")
def write(ctx: NodeContext) -> None:
    """Say something past Python's streams, and in between on them."""
    for turn in range(3):
        os.write(1, f"raw {turn}\n".encode())
        print("printed", turn)  # noqa: T201 - what becomes of it is tested
        os.system(f"echo program {turn}")
        ctx.log(f"context {turn}")
        subprocess.run(["sh", "-c", f"echo error {turn} >&2"], check=True)
        logging.getLogger().error("logged %d", turn)
    os.write(1, b"\xff\xc3\xa4\x00, \xc3")


@node("restless.flood")
def flood(ctx: NodeContext, *, count: int, by: str) -> str:
    """Write more than a pipe holds at once."""
    if by == "program":
        subprocess.run(
            ["sh", "-c", f"yes | head -c {count}; yes | head -c {count} >&2"], check=True
        )
    else:
        rest = b"x" * count
        while rest:
            rest = rest[os.write(1, rest) :]
    return "done"


@node("restless.leave_writer")
def leave_writer(ctx: NodeContext) -> None:
    """Leave a program behind that fills the pipes for ever."""
    subprocess.Popen(["sh", "-c", "yes | head -c 1000000; exec yes >&2"])


@node("restless.write_on_close")
def write_on_close(ctx: NodeContext) -> None:
    """Write in the teardown."""
    ctx.on_close(lambda: os.write(1, b"of nobody\nand"))


@node("restless.write_from_fork")
def write_from_fork(ctx: NodeContext) -> int:
    """Say something in every way from a forked process."""
    sys.stdout.write("begun, ")
    pid = os.fork()  # noqa: TID251 - what a step may do
    if pid == 0:
        os.write(2, b"raw\n")
        sys.stderr.write("printed\n")
        logging.getLogger().error("logged")
        os._exit(0)
    return os.waitpid(pid, 0)[1]


@node("restless.close_descriptors")
def close_descriptors(ctx: NodeContext, *, copies: bool = False) -> None:
    """Leave the standard descriptors other than they were."""
    os.set_blocking(2, False)
    os.close(0)
    os.close(1)
    os.dup2(os.open("elsewhere", os.O_WRONLY | os.O_CREAT), 2)
    if copies:
        os.closerange(100, 110)


@node("restless.look_at_descriptors")
def look_at_descriptors(ctx: NodeContext) -> list[Any]:
    """Return what the standard descriptors are, and write to them."""
    os.system("echo out; echo error >&2; cat")
    return [[os.readlink(f"/proc/self/fd/{n}"), os.get_blocking(n)] for n in range(3)]  # noqa: PTH115
