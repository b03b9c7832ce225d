"""Nodes of the storm trial: a step uses its resources, then behaves well or badly as the run's seed decides."""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import psycopg

from isolane import NodeContext, StepError, node
from isolane.providers.cache import CacheHandle

KEPT: list[Any] = []  # references that a careless module keeps
_FOREVER = 3600.0


@node("storm.step", idempotent=True)
def step(ctx: NodeContext, *, resources: list[str], behaviour: str = "") -> dict[str, Any]:
    """Open these resources, use them, and end with this behaviour, or with one that the seed chooses."""
    handles = [ctx.resource(name) for name in resources]
    for handle in handles:
        _use(handle, ctx)
    weights = [weight for weight, _ in BEHAVIOURS.values()]
    chosen = behaviour or ctx.random.choices(list(BEHAVIOURS), weights)[0]
    ctx.log(f"behaviour {chosen}")
    BEHAVIOURS[chosen][1](ctx, handles)
    return {"behaviour": chosen}


def _use(handle: Any, ctx: NodeContext) -> None:
    if isinstance(handle, psycopg.Connection):
        handle.execute("SELECT count(*) FROM invoice").fetchone()
    elif isinstance(handle, CacheHandle):
        for number in range(3):
            handle.set(f"{ctx.step}/{number}", ctx.execution_id)
    else:
        handle.get(f"/{ctx.step}")


# --- behaviours
def _succeed(_ctx: NodeContext, _handles: list[Any]) -> None:
    pass


def _raise(ctx: NodeContext, _handles: list[Any]) -> None:
    raise StepError("TRANSIENT_ERROR", f"attempt {ctx.attempt} breaks")


def _hang(_ctx: NodeContext, _handles: list[Any]) -> None:
    while True:  # even after a cancellation
        time.sleep(_FOREVER)


def _hang_in_statement(_ctx: NodeContext, handles: list[Any]) -> None:
    for handle in handles:
        if isinstance(handle, psycopg.Connection):
            handle.execute("SELECT pg_sleep(3600)")
    time.sleep(_FOREVER)


def _exit(_ctx: NodeContext, _handles: list[Any]) -> None:
    sys.exit(3)


def _exit_at_once(_ctx: NodeContext, _handles: list[Any]) -> None:
    os._exit(0)


def _crash(_ctx: NodeContext, _handles: list[Any]) -> None:
    ctypes.string_at(0)


def _kill_itself(_ctx: NodeContext, _handles: list[Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fork(_ctx: NodeContext, _handles: list[Any]) -> None:
    """Fork a child that has copies of all open sockets."""
    if os.fork() == 0:  # noqa: TID251 - a bad step does it
        _sleep_in_child()


def _daemonise(_ctx: NodeContext, _handles: list[Any]) -> None:
    """Fork a grandchild in a session of its own, with the same sockets."""
    if os.fork() == 0:  # noqa: TID251 - a bad step does it
        os.setsid()
        if os.fork():  # noqa: TID251 - a bad step does it
            os._exit(0)
        _sleep_in_child()


def _fork_and_exit(ctx: NodeContext, handles: list[Any]) -> None:
    """Leave a grandchild that outlives the runner."""
    _daemonise(ctx, handles)
    os._exit(1)


def _leave_a_thread(_ctx: NodeContext, handles: list[Any]) -> None:
    """Start a thread that continues to use the handles, even if they fail."""
    threading.Thread(target=_use_for_ever, args=(list(handles),), daemon=True).start()


def _keep_handles(_ctx: NodeContext, handles: list[Any]) -> None:
    KEPT.extend(handles)


def _keep_context(ctx: NodeContext, _handles: list[Any]) -> None:
    KEPT.append(ctx)


def _connect_itself(_ctx: NodeContext, handles: list[Any]) -> None:
    """Connect with the credentials of the handles, past the platform, and keep the connections."""
    KEPT.extend(_own_connection(handle) for handle in handles)


def _connect_itself_and_fork(ctx: NodeContext, handles: list[Any]) -> None:
    _connect_itself(ctx, handles)
    _fork(ctx, handles)


def _keep_sockets(_ctx: NodeContext, handles: list[Any]) -> None:
    """Keep copies of descriptors, which stay open when the handles are closed."""
    for handle in handles:
        if isinstance(handle, psycopg.Connection):
            KEPT.append(socket.socket(fileno=os.dup(handle.fileno())))
        elif isinstance(handle, CacheHandle):
            KEPT.append(handle._connection._sock.dup())


def _leave_a_transaction(_ctx: NodeContext, handles: list[Any]) -> None:
    for handle in handles:
        if isinstance(handle, psycopg.Connection):
            handle.execute("BEGIN")
            handle.execute("SELECT * FROM invoice FOR SHARE" if _owns(handle) else "SELECT 1")


def _end_badly(ctx: NodeContext, _handles: list[Any]) -> None:
    """Register callbacks that raise, or take longer than allowed."""
    ctx.on_close(_refuse_to_close)
    if ctx.random.random() < 0.3:
        ctx.on_close(lambda: time.sleep(_FOREVER))


# Weight and function. The trial reads the names from the logs of the steps.
Behaviour = Callable[[NodeContext, list[Any]], None]
BEHAVIOURS: dict[str, tuple[int, Behaviour]] = {
    "succeed": (34, _succeed),
    "raise": (7, _raise),
    "hang": (4, _hang),
    "hang in a statement": (3, _hang_in_statement),
    "sys.exit": (4, _exit),
    "os._exit": (4, _exit_at_once),
    "crash": (2, _crash),
    "kill itself": (5, _kill_itself),
    "fork": (4, _fork),
    "daemonise": (4, _daemonise),
    "fork and exit": (3, _fork_and_exit),
    "leave a thread": (5, _leave_a_thread),
    "keep handles": (5, _keep_handles),
    "keep the context": (3, _keep_context),
    "connect itself": (5, _connect_itself),
    "connect itself and fork": (2, _connect_itself_and_fork),
    "keep sockets": (4, _keep_sockets),
    "leave a transaction": (3, _leave_a_transaction),
    "end badly": (2, _end_badly),
}


def _own_connection(handle: Any) -> Any:
    if isinstance(handle, psycopg.Connection):
        # A minted role may connect to this database, too, since it is open to all roles.
        return psycopg.connect(
            handle.info.dsn,
            password=handle.info.password,
            dbname="postgres" if _owns(handle) else handle.info.dbname,
        )
    if isinstance(handle, CacheHandle):
        known = handle._connection
        copy = type(known)(
            host=known.host,
            port=known.port,
            username=known.username,
            password=known.password,
            client_name=known.client_name,
            driver_info=None,
            protocol=2,
        )
        copy.connect()
        return copy
    url = handle.base_url
    client = httpx.Client(
        # The only address of the service that exists in a sandbox, if its definition has no name.
        base_url=url.copy_with(host=handle._transport._backend._address),
        headers={"Host": url.netloc.decode(), "User-Agent": handle.headers["user-agent"]},
    )
    client.get("/own")
    return client


def _owns(handle: "psycopg.Connection[Any]") -> bool:
    return handle.info.user.startswith("iso_")


def _use_for_ever(handles: list[Any]) -> None:
    while True:
        for handle in handles:
            with contextlib.suppress(Exception):
                if isinstance(handle, psycopg.Connection):
                    handle.execute("SELECT pg_sleep(0.01)")
                elif isinstance(handle, CacheHandle):
                    handle.incr("beats")
                else:
                    handle.get("/beat")
        time.sleep(0.005)


def _sleep_in_child() -> None:
    try:
        time.sleep(_FOREVER)
    finally:
        os._exit(0)


def _refuse_to_close() -> None:
    raise ValueError("it refuses to close")
