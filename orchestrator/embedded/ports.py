"""Ports for the HTTP services; the embedded servers need none."""

from __future__ import annotations

import socket


def choose_port(preferred: int, host: str = "127.0.0.1") -> tuple[int, bool]:
    """A port to listen on, and whether `preferred` was taken so that it is another one."""
    try:
        return _bind(host, preferred), False
    except OSError:  # in use, or not for us (below 1024)
        return _bind(host, 0), True


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections of a former server that linger in TIME_WAIT do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        bound: int = probe.getsockname()[1]
        return bound
