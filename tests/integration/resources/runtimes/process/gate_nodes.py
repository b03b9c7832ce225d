"""Steps that use the network of their sandbox, or attack it."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from isolane import NodeContext, node

SECONDS = 20.0
GUARD = 1


def _connect(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=SECONDS)


@node("gate.resolve")
def resolve(ctx: NodeContext, *, names: list[str]) -> dict[str, Any]:
    """Return the addresses of names, and how long the lookups took together."""
    began, found = time.monotonic(), {}
    for name in names:
        try:
            answers = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)
            found[name] = sorted(str(answer[4][0]) for answer in answers)
        except OSError as error:
            found[name] = [type(error).__name__]
    return {"found": found, "seconds": time.monotonic() - began}


@node("gate.exchange")
def exchange(ctx: NodeContext, *, places: list[list[Any]], text: str = "hello") -> list[str]:
    """Send a text to each place, end, and return what came back, or the error."""
    return [_exchange(host, port, text) for host, port in places]


def _exchange(host: str, port: int, text: str = "hello") -> str:
    try:
        with _connect(host, port) as sock:
            sock.sendall(text.encode())
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    except OSError as error:
        return type(error).__name__


@node("gate.handle")
def handle(ctx: NodeContext, *, path: str) -> str:
    """Get a path by the handle of a resource."""
    return str(ctx.resource("api").get(path).text)


@node("gate.child")
def child(ctx: NodeContext, *, host: str, port: int) -> str:
    """Let a program of its own use the network."""
    code = f"import socket; s = socket.create_connection(({host!r}, {port})); s.sendall(b'by a child'); s.shutdown(1); print(s.recv(99).decode())"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@node("gate.massacre")
def massacre(ctx: NodeContext, *, host: str, port: int) -> dict[str, Any]:
    """Kill all others that can be killed; return whether there were any, and what is left of the network."""
    killed = 0
    for path in Path("/proc").glob("[0-9]*"):
        if int(path.name) not in {GUARD, os.getpid()}:
            with contextlib.suppress(OSError):
                os.kill(int(path.name), signal.SIGKILL)
                killed += 1
    if killed:
        time.sleep(SECONDS)  # the forwarder was among them, and the guard ends all
    return {"killed": killed, "answer": _exchange(host, port)}


@node("gate.transfer")
def transfer(ctx: NodeContext, *, host: str, port: int, size: int) -> dict[str, Any]:
    """Send bytes to a server that sends them back; return the digests of both directions."""
    block = os.urandom(1024 * 1024)
    up, down = hashlib.sha256(), hashlib.sha256()
    with _connect(host, port) as sock:

        def send() -> None:
            for _ in range(size):
                sock.sendall(block)
                up.update(block)
            sock.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        while data := sock.recv(65536):
            down.update(data)
        sending.join()
    return {"up": up.hexdigest(), "down": down.hexdigest()}


@node("gate.stall")
def stall(ctx: NodeContext, *, pouring: list[Any], echoing: list[Any]) -> str:
    """Leave a download unread beside another connection; return what that one says."""
    stalled = _connect(*pouring)
    stalled.recv(1)
    time.sleep(0.05)
    answer = _exchange(*echoing)
    globals()["_kept"] = stalled  # open to the end of the run
    return answer


@node("gate.leave_transfer")
def leave_transfer(ctx: NodeContext, *, pouring: list[Any]) -> float:
    """Return the time at which it returns, while a download goes on and another one is not read."""
    stalled, transfer = _connect(*pouring), _connect(*pouring)
    stalled.recv(1)
    read = [len(transfer.recv(65536))]

    def read_on() -> None:
        while data := transfer.recv(65536):
            read.append(len(data))

    reading = threading.Thread(target=read_on, daemon=True)
    reading.start()
    globals()["_kept"] = stalled, transfer, reading, read
    return time.monotonic()


@node("gate.wait_for_transfer")
def wait_for_transfer(ctx: NodeContext) -> int:
    """Return the size of the download that went on, once it has ended; the other one is given up."""
    stalled, transfer, reading, read = globals().pop("_kept")
    reading.join()
    stalled.close()
    transfer.close()
    return sum(read)


@node("gate.leave")
def leave(ctx: NodeContext, *, host: str, port: int, size: int) -> None:
    """Send bytes, close and return at once."""
    sock = _connect(host, port)
    sock.sendall(b"x" * size)
    sock.close()


@node("gate.give_up")
def give_up(ctx: NodeContext, *, host: str, port: int, times: int) -> list[str]:
    """Ask so many times, wait in vain, and close; return the errors."""
    found = []
    for _ in range(times):
        with _connect(host, port) as sock:
            sock.sendall(b"question")
            sock.settimeout(0.01)
            try:
                found.append(str(sock.recv(1)))
            except OSError as error:
                found.append(type(error).__name__)
    return found


@node("gate.keep")
def keep(ctx: NodeContext, *, host: str, port: int) -> None:
    """Leave a connection open."""
    sock = globals()["_kept"] = _connect(host, port)
    sock.sendall(b"open")
    sock.recv(4)
