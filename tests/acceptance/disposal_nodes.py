"""Nodes that end a run in every way there is, with resources open."""

import os
import signal
import time
from typing import Any

import psycopg

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
def hang(ctx: NodeContext, *, seconds: float = 60.0) -> None:
    """Open everything and wait."""
    _open_all(ctx)
    time.sleep(seconds)


@node("ending.kill")
def kill(ctx: NodeContext) -> None:
    """Open everything and be gone."""
    _open_all(ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@node("ending.bad_close")
def bad_close(ctx: NodeContext) -> None:
    """Open everything between callbacks; one raises, one exits, the first and the last visit the server."""
    visits = Visits(ctx)
    ctx.on_close(lambda: visits.visit("first"))
    ctx.on_close(lambda: 1 // 0)
    visits.open()
    ctx.on_close(lambda: (_ for _ in ()).throw(SystemExit(3)))
    ctx.on_close(lambda: visits.visit("last"))


@node("ending.hanging_close")
def hanging_close(ctx: NodeContext) -> None:
    """Open everything before a callback that does not return."""
    visits = Visits(ctx)
    ctx.on_close(lambda: visits.visit("first"))
    visits.open()
    ctx.on_close(lambda: time.sleep(60))


class Visits:
    """Connections by which callbacks show that they ran: files of a sandbox are not seen outside."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self._login: dict[str, Any] = {}

    def open(self) -> None:
        """Open everything, and keep the login."""
        _open_all(self._ctx)
        known = self._ctx.resource("shop").info
        self._login = {"conninfo": known.dsn, "password": known.password}

    def visit(self, name: str) -> None:
        """Connect under this name."""
        visitor = f"{name} {self._ctx.execution_id}"
        psycopg.connect(**self._login, application_name=visitor).close()
