"""Ports on this machine: for the HTTP services, and for servers that runs reach over TCP."""

from __future__ import annotations

import socket
import weakref

LOOPBACK = "127.0.0.1"


class ReservedPort:
    """A free port, reserved for as long as this object lives.

    It is bound and not listened on: the kernel assigns it to no one that asks for any free port, while a
    server that gets its number can listen there, also when it is restarted after a crash.
    """

    def __init__(self) -> None:
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        weakref.finalize(self, holder.close)
        # Servers set it as well; only then may both be bound.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((LOOPBACK, 0))
        self.number: int = holder.getsockname()[1]


def choose_port(preferred: int, host: str = LOOPBACK) -> tuple[int, bool]:
    """Return a port to listen on, and true if it is another one because `preferred` was taken."""
    try:
        return _bind(host, preferred), False
    except OSError:  # in use, or not allowed (below 1024)
        return _bind(host, 0), True


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections of an earlier server that linger in TIME_WAIT do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        bound: int = probe.getsockname()[1]
        return bound
