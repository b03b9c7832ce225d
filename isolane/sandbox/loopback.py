"""A new network namespace: its loopback interface, which is down at first, and the size of its buffers."""

import fcntl
import socket
import struct

_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_BUFFERS = {
    "tcp_rmem": "4096 131072 425984",
    "tcp_wmem": "4096 16384 425984",
}  # least, default, most
_REQUEST = struct.Struct("16sh14x")


def raise_loopback() -> None:
    """Bring `lo` up, so that processes of the run reach each other, and nobody else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        found = fcntl.ioctl(sock, _SIOCGIFFLAGS, _REQUEST.pack(b"lo", 0))
        _, flags = _REQUEST.unpack(found)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, _REQUEST.pack(b"lo", flags | _IFF_UP))


def bound_buffers() -> None:
    """Let no TCP connection hold more than one whose program sets its size, instead of some megabytes."""
    for name, sizes in _BUFFERS.items():
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:
            file.write(sizes)
