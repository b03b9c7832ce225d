"""Nodes whose effects are messages to a judge, who knows how often each has happened.

The judge listens at a socket in a folder that sandboxes show.
"""

import json
import os
import signal
import socket
import time

from isolane import NodeContext, StepError, node

HALF = "half done"
SOCKET = "judge"


def _effect(ctx: NodeContext, folder: str, hold: str, *, keyed: bool = False) -> int:
    """Begin, be half done, end. `hold`: not to come further than half, `once` or as long as it runs here."""
    _note(ctx, folder, "start")
    if keyed:  # a remote server that honours keys
        _note(ctx, folder, f"key {ctx.idempotency_key}")
    ctx.log(HALF)
    if hold == "always" or (hold == "once" and ctx.epoch == 1):
        time.sleep(600)
    _note(ctx, folder, "end")
    return 1


def _note(ctx: NodeContext, folder: str, what: str) -> None:
    line = json.dumps([what, ctx.execution_id, ctx.step, ctx.epoch, ctx.attempt, time.time()])
    opened = os.open(folder, os.O_PATH)  # since the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(line.encode(), f"/proc/self/fd/{opened}/{SOCKET}")
    finally:
        os.close(opened)


@node("survival.plain")
def plain(ctx: NodeContext, *, folder: str, hold: str = "") -> int:
    """Have an effect."""
    return _effect(ctx, folder, hold)


@node("survival.keyed", uses_key=True)
def keyed(ctx: NodeContext, *, folder: str, hold: str = "") -> int:
    """Have an effect at a remote server that honours keys."""
    return _effect(ctx, folder, hold, keyed=True)


@node("survival.idempotent", idempotent=True)
def idempotent(ctx: NodeContext, *, folder: str, hold: str = "") -> int:
    """Have an effect that may be repeated."""
    return _effect(ctx, folder, hold)


@node("survival.deterministic", deterministic=True)
def deterministic(ctx: NodeContext, *, folder: str, hold: str = "") -> int:
    """Come to the same each time."""
    return _effect(ctx, folder, hold)


@node("survival.take")
def take(ctx: NodeContext, *, folder: str, seconds: float) -> int:
    """Take its time."""
    _note(ctx, folder, "start")
    time.sleep(seconds)
    _note(ctx, folder, "end")
    return 1


@node("survival.limited")
def limited(ctx: NodeContext, *, folder: str) -> int:
    """Be told at first to come again later."""
    _note(ctx, folder, "start")
    if ctx.attempt == 1:
        raise StepError("RATE_LIMIT_ERROR", "come again")
    return ctx.attempt


@node("survival.die")
def die(ctx: NodeContext, *, folder: str) -> int:
    """Take the runtime along, at first."""
    _note(ctx, folder, "start")
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


@node("survival.mend")
def mend(ctx: NodeContext, *, folder: str) -> str:
    """Take the place of what failed."""
    _note(ctx, folder, "start")
    return "mended"
