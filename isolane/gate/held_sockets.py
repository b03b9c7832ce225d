"""The sockets of a network that programs still have open, as the kernel lists them.

A program that closes its socket and one that ends its direction alone look the same at the other end. In the kernel's
list the closed one belongs to nobody.
"""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"  # begins IPv4 addresses of sockets of IPv6
_LOCAL, _REMOTE, _INODE = 1, 2, 9  # columns

Ends = tuple[str, str]  # of a socket: its own and the other one, as the kernel writes them


def held_sockets() -> set[Ends]:
    """Return the ends of all sockets that a program has open."""
    return {ends for table in TABLES if table.exists() for ends in _held(table.read_text("ascii"))}


def ends_of_peer(sock: socket.socket) -> Ends:
    """Return the ends of the socket to which this one is connected, in the same network."""
    return _written(sock.family, sock.getpeername()), _written(sock.family, sock.getsockname())


def _held(table: str) -> Iterator[Ends]:
    for line in table.splitlines()[1:]:
        columns = line.split()
        if columns[_INODE] != "0":
            yield columns[_LOCAL].removeprefix(_MAPPED), columns[_REMOTE].removeprefix(_MAPPED)


def _written(family: int, place: tuple[str, int]) -> str:
    words = struct.unpack(
        f"={4 if family == socket.AF_INET6 else 1}I", socket.inet_pton(family, place[0])
    )
    return "".join(f"{word:08X}" for word in words) + f":{place[1]:04X}"
