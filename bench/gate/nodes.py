"""The nodes of the measured runs; times are of the machine's monotonic clock, which is the same in a sandbox."""

import socket
import threading
import time
from typing import Any

from bench.gate.remote import DONE, DOWN, ECHO, FOREVER, UP, WISH, receive, send
from isolane import NodeContext, node

_MB = 1024 * 1024
_BEGUN_MB = 8


def _connect(host: str, port: int, wish: bytes, size: int = 0) -> socket.socket:
    sock = socket.create_connection((host, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(WISH.pack(wish, size))
    return sock


@node("gate.nothing")
def nothing(ctx: NodeContext) -> float:
    """Return the time."""
    return time.monotonic()


@node("gate.first")
def first(ctx: NodeContext, *, host: str, port: int) -> float:
    """Return the time at which a first byte has come from the remote server."""
    with _connect(host, port, ECHO) as sock:
        sock.sendall(b"x")
        sock.recv(1)
    return time.monotonic()


@node("gate.up")
def up(ctx: NodeContext, *, host: str, port: int, mb: int) -> dict[str, float]:
    """Send so many MB."""
    with _connect(host, port, UP, mb * _MB) as sock:
        cpu, began = time.process_time(), time.monotonic()
        send(sock, mb * _MB)
        if sock.recv(1) != DONE:
            raise ConnectionResetError("the remote server has not received all")
        return {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu}


@node("gate.down")
def down(ctx: NodeContext, *, host: str, port: int, mb: int) -> dict[str, float]:
    """Receive so many MB."""
    with _connect(host, port, DOWN, mb * _MB) as sock:
        cpu, began = time.process_time(), time.monotonic()
        receive(sock, mb * _MB)
        return {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu}


@node("gate.echo")
def echo(ctx: NodeContext, *, host: str, port: int, times: int) -> list[float]:
    """Return the milliseconds of each byte there and back."""
    found = []
    with _connect(host, port, ECHO) as sock:
        for _ in range(times):
            began = time.perf_counter()
            sock.sendall(b"x")
            sock.recv(1)
            found.append((time.perf_counter() - began) * 1000)
    return found


@node("gate.query")
def query(ctx: NodeContext, *, times: int) -> list[float]:
    """Return the milliseconds of each trivial query."""
    found, database = [], ctx.resource("database")
    for _ in range(times):
        began = time.perf_counter()
        database.execute("SELECT 1").fetchone()
        found.append((time.perf_counter() - began) * 1000)
    return found


@node("gate.leave")
def leave(ctx: NodeContext, *, host: str, port: int, mb: int) -> float:
    """Return the time at which it returns, while so many MB come, and beside them what nobody reads."""
    _LEFT.append(_connect(host, port, FOREVER))
    transfer = _connect(host, port, DOWN, mb * _MB)
    receive(transfer, _BEGUN_MB * _MB)
    rest = threading.Thread(target=receive, args=(transfer, (mb - _BEGUN_MB) * _MB), daemon=True)
    rest.start()
    return time.monotonic()


_LEFT: list[Any] = []  # sockets that nobody reads
