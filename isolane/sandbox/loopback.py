"""A new network namespace: its loopback interface, which is down at first, its ports and the size of its buffers."""

import contextlib
import fcntl
import socket
import struct
from ipaddress import IPv6Network

_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_BUFFERS = {
    "tcp_rmem": "4096 131072 425984",
    "tcp_wmem": "4096 16384 425984",
}  # least, default, most
_REQUEST = struct.Struct("16sh14x")

# Every address of it is this namespace's own, as those of 127.0.0.0/8 are.
LOOPBACK_V6 = IPv6Network("fd69:736f:6c61:6e65::/64")
_NEW_ROUTE, _REQUESTED, _MADE, _ANSWERED = 24, 0x01, 0x400, 0x04
_MESSAGE = struct.Struct("=IHHII")  # length, kind, flags, number, process
# Family, length of the prefix, 0, 0, table, protocol, scope, kind, flags.
_ROUTE = struct.Struct("=8BI")
_TABLE_LOCAL, _BY_BOOT, _SCOPE_HOST, _KIND_LOCAL = 255, 3, 254, 2
_DESTINATION, _OUTPUT = 1, 4
_LOOPBACK_INDEX = 1


def raise_loopback() -> None:
    """Bring `lo` up, so that processes of the run reach each other, and nobody else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        found = fcntl.ioctl(sock, _SIOCGIFFLAGS, _REQUEST.pack(b"lo", 0))
        _, flags = _REQUEST.unpack(found)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, _REQUEST.pack(b"lo", flags | _IFF_UP))


def allow_low_ports() -> None:
    """Let every user of the namespace listen at the ports of well-known services."""
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w", encoding="ascii") as file:
        file.write("0")


def add_loopback_v6() -> None:
    """Make LOOPBACK_V6 the namespace's own, unless the machine has no IPv6."""
    attributes = b"".join((
        _attribute(_DESTINATION, LOOPBACK_V6.network_address.packed),
        _attribute(_OUTPUT, struct.pack("=i", _LOOPBACK_INDEX)),
    ))  # fmt: skip
    route = _ROUTE.pack(
        socket.AF_INET6, LOOPBACK_V6.prefixlen, 0, 0, _TABLE_LOCAL, _BY_BOOT, _SCOPE_HOST, _KIND_LOCAL, 0,
    )  # fmt: skip
    length = _MESSAGE.size + len(route) + len(attributes)
    flags = _REQUESTED | _MADE | _ANSWERED
    message = _MESSAGE.pack(length, _NEW_ROUTE, flags, 1, 0) + route + attributes
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock,
    ):
        sock.sendto(message, (0, 0))
        sock.recv(4096)  # done, or refused: then names have addresses of IPv4 only


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data


def bound_buffers() -> None:
    """Let no TCP connection hold more than one whose program sets its size, instead of some megabytes."""
    for name, sizes in _BUFFERS.items():
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:
            file.write(sizes)
