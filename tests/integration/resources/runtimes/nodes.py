"""Nodes that leave a process other than they found it, or say what is not theirs to say."""

import decimal
import locale
import logging
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

from isolane import NodeContext, StepError, node
from isolane.protocol import COSTS_MAX, Cost
from isolane.results import StepResult

_released = threading.Event()


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


@node("restless.leave_forger")
def leave_forger(ctx: NodeContext, *, with_result: bool) -> None:
    """Leave a thread behind that speaks for the next attempt."""

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
