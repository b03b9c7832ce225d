"""Nodes that end a run in every way there is, with resources open."""

import os
import signal
import time
from pathlib import Path

from isolane import NodeContext, StepError, node


def _open_all(ctx: NodeContext) -> None:
    """Both resources are open, and used."""
    ctx.resource("shop").execute("select 1")
    ctx.resource("scratch").set("mine", ctx.execution_id)


@node("ending.use")
def use(ctx: NodeContext) -> str:
    """Open everything and return."""
    _open_all(ctx)
    return ctx.execution_id


@node("ending.raise")
def raise_(ctx: NodeContext) -> None:
    """Open everything and raise."""
    _open_all(ctx)
    raise StepError("UNKNOWN_ERROR", "as asked")


@node("ending.hang")
def hang(ctx: NodeContext, *, seconds: float = 60.0, begun: str = "") -> None:
    """Open everything, note it and wait."""
    _open_all(ctx)
    if begun:
        Path(begun).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(seconds)


@node("ending.kill")
def kill(ctx: NodeContext) -> None:
    """Open everything and be gone."""
    _open_all(ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@node("ending.bad_close")
def bad_close(ctx: NodeContext, *, file: str) -> None:
    """Open everything between callbacks of which one raises and one exits; the first and the last write."""
    ctx.on_close(lambda: _append(file, "first"))
    ctx.on_close(lambda: 1 // 0)
    _open_all(ctx)
    ctx.on_close(lambda: (_ for _ in ()).throw(SystemExit(3)))
    ctx.on_close(lambda: _append(file, "last"))


@node("ending.hanging_close")
def hanging_close(ctx: NodeContext, *, file: str) -> None:
    """Open everything before a callback that does not return."""
    ctx.on_close(lambda: _append(file, "first"))
    _open_all(ctx)
    ctx.on_close(lambda: time.sleep(60))


def _append(file: str, text: str) -> None:
    with Path(file).open("a", encoding="utf-8") as stream:
        stream.write(f"{text}\n")
