"""Nodes that use, leak and misuse resources, for tests with a real runner."""

import os
import socket
import time
from typing import Any

from isolane import NodeContext, node
from isolane.protocol import Resource

KEPT: list[Any] = []


@node("resource.use")
def use(ctx: NodeContext, *, name: str) -> dict[str, Any]:
    """Ask the server who this is."""
    return {"id": ctx.resource_id(name), "pid": ctx.check_resource(name)["pid"]}


@node("resource.use_and_fail")
def use_and_fail(ctx: NodeContext, *, name: str) -> None:
    """Leave by an exception."""
    ctx.resource(name)
    raise SystemExit(3)


@node("resource.use_and_hang")
def use_and_hang(ctx: NodeContext, *, name: str) -> None:
    """Use it, and do nothing until asked to stop."""
    ctx.resource(name)
    while not ctx.cancelled:
        time.sleep(0.01)


@node("resource.lose_and_use")
def lose_and_use(ctx: NodeContext, *, name: str) -> dict[str, Any]:
    """Lose the connection that the run has, and ask for it again."""
    ctx.resource(name).close()
    return use(ctx, name=name)


@node("resource.say_late")
def say_late(ctx: NodeContext, *, name: str) -> None:
    """Have a thread that is late say that it was handed something, when the run ends."""
    said = Resource(
        event="reused", name=name, resource_id=ctx.resource_id(name), step="of-a-thread"
    )
    ctx.on_close(lambda: ctx._emit(said))


@node("resource.keep")
def keep(ctx: NodeContext, *, name: str) -> None:
    """Save the handle and the context for a later run."""
    KEPT[:] = [ctx, ctx.resource(name)]


@node("resource.use_kept")
def use_kept(ctx: NodeContext, *, name: str) -> list[str]:
    """Try what an earlier run saved."""
    kept, handle = KEPT
    errors = []
    for ask, what in ((kept.resource, name), (handle.execute, "SELECT 1")):
        try:
            ask(what)
        except Exception as error:  # noqa: BLE001 - what it is, is the answer
            errors.append(f"{type(error).__name__}: {error}")
    return errors


@node("resource.fork")
def fork(ctx: NodeContext, *, name: str) -> dict[str, Any]:
    """Use it in a forked child, which goes its own way past the end of the step."""
    ctx.resource(name)
    pid = os.fork()  # noqa: TID251 - what a step may do
    if pid == 0:
        ctx.resource(name)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"code": code, "pid": ctx.check_resource(name)["pid"]}


@node("resource.leave_socket")
def leave_socket(ctx: NodeContext) -> None:
    """Open a socket past the context, and keep it."""
    KEPT[:] = [socket.socket()]
