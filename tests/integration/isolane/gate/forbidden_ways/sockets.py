"""Ways by sockets of other kinds than TCP."""

import ctypes
import os
import socket
import struct
from functools import partial
from pathlib import Path

from tests.integration.isolane.gate.forbidden_ways.way import (
    SECONDS,
    Facts,
    NotReached,
    Way,
    first_reached,
    greeted,
    judged,
)

_METADATA = "169.254.169.254"
_LIBC = ctypes.CDLL(None, use_errno=True)
_HOST = 2  # of vsock: the machine around a virtual one
_FAMILIES = {  # by their numbers, because Python does not name all of them
    "netlink": (16, socket.SOCK_RAW, 0),
    "packet": (17, socket.SOCK_RAW, 0x0300),
    "packet_cooked": (17, socket.SOCK_DGRAM, 0x0300),
    "vsock": (40, socket.SOCK_STREAM, 0),
    "vsock_datagram": (40, socket.SOCK_DGRAM, 0),
    "alg": (38, socket.SOCK_SEQPACKET, 0),
    "bluetooth": (31, socket.SOCK_RAW, 1),
    "can": (29, socket.SOCK_RAW, 1),
    "tipc": (30, socket.SOCK_STREAM, 0),
    "xdp": (44, socket.SOCK_RAW, 0),
    "smc": (43, socket.SOCK_STREAM, 0),
    "rds": (21, socket.SOCK_SEQPACKET, 0),
    "kcm": (41, socket.SOCK_DGRAM, 0),
    "qipcrtr": (42, socket.SOCK_DGRAM, 0),
    "x25": (9, socket.SOCK_SEQPACKET, 0),
    "raw": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
    "raw_icmp": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "raw_ipv6": (socket.AF_INET6, socket.SOCK_RAW, 58),
}
_TRANSPORTS = {
    "sctp": (socket.SOCK_STREAM, 132),
    "sctp_packets": (socket.SOCK_SEQPACKET, 132),
    "dccp": (6, 33),
    "mptcp": (socket.SOCK_STREAM, 262),
    "udplite": (socket.SOCK_DGRAM, 136),
}


def _made(family: int, kind: int, protocol: int, facts: Facts) -> str:
    """Make a socket that could see or send more than it may: that alone is one way too many."""
    with socket.socket(family, kind, protocol) as sock:
        return f"{sock}"


def _transport(kind: int, protocol: int, facts: Facts) -> str:
    with socket.socket(socket.AF_INET, kind, protocol) as sock:
        sock.settimeout(SECONDS)
        sock.connect((_METADATA, 80))
        return greeted(sock)


def _vsock_of_the_host(facts: Facts) -> str:
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect((_HOST, 22))
        return "the host"


def _ping(facts: Facts) -> str:
    """Ask for an echo by the socket that some systems give to every user."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as sock:
        sock.settimeout(SECONDS)
        sock.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FD, 1, 1), (_METADATA, 0))
        return repr(sock.recv(64))


def _datagram(address: str, port: int, facts: Facts) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect((address, port))
        sock.send(b"?")
        return judged(sock.recv(512))


def _datagram_to_declared(facts: Facts) -> str:
    """Send by UDP to the port that is declared for TCP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect((facts["http"]["host"], facts["http"]["port"]))
        sock.send(b"?")
        return repr(sock.recv(512))


def _multicast(facts: Facts) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        sock.sendto(b"?", ("239.255.255.250", 443))
        return judged(sock.recv(512))


def _broadcast(facts: Facts) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(b"?", ("255.255.255.255", 443))
        return judged(sock.recv(512))


def _unix_paths(facts: Facts) -> str:
    """Connect to the sockets that machines have, and to those that the test has made."""
    usual = ["/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private", "/dev/log"]
    usual += ["/run/dbus/system_bus_socket", "/run/containerd/containerd.sock"]
    return _first_of([*usual, *facts.get("unix_paths", [])])


def _abstract_sockets(facts: Facts) -> str:
    shown = Path("/proc/net/unix").read_text().split()
    listed = ["\0" + name[1:] for name in shown if name.startswith("@")]
    return _first_of([*("\0" + name for name in facts.get("abstract", [])), *listed])


def _first_of(addresses: list[str]) -> str:
    return first_reached(partial(_connected_to, address) for address in addresses)


def _connected_to(address: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect(address)
        return f"{address!r}"


def _other_namespaces(facts: Facts) -> str:
    """Enter the network of another process."""
    paths = Path("/proc").glob("[0-9]*/ns/net")
    return first_reached(partial(_enter, path) for path in paths)


def _enter(path: Path) -> str:
    if path.stat().st_ino == Path("/proc/self/ns/net").stat().st_ino:
        raise NotReached("it is the run's own network")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _LIBC.setns(descriptor, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(descriptor)
    return f"{path}"


def _descriptors_of_others(facts: Facts) -> str:
    """List the descriptors of a process that is not this one, such as a socket of the guard's."""
    folders = Path("/proc").glob("[0-9]*/fd")
    others = [folder for folder in folders if folder.parent.name != str(os.getpid())]
    return first_reached(partial(_listed, folder) for folder in others)


def _listed(folder: Path) -> str:
    links = [str(link.readlink()) for link in folder.iterdir()]
    if not links:
        raise NotReached("it has none")
    return f"{links}"


def _tunnel(facts: Facts) -> str:
    with Path("/dev/net/tun").open("r+b", buffering=0):
        return "/dev/net/tun"


def _send_a_socket_to_init(facts: Facts) -> str:
    """Ask for a copy of a descriptor of process 1."""
    process = _LIBC.syscall(434, 1, 0)  # pidfd_open
    if process < 0:
        raise OSError(ctypes.get_errno(), "pidfd_open")
    try:
        copied = _LIBC.syscall(438, process, 3, 0)  # pidfd_getfd
        if copied < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return f"descriptor {copied}"
    finally:
        os.close(process)


SOCKETS: dict[str, Way] = {
    **{f"make_{name}": partial(_made, *numbers) for name, numbers in _FAMILIES.items()},
    **{f"connect_by_{name}": partial(_transport, *pair) for name, pair in _TRANSPORTS.items()},
    "vsock_of_the_host": _vsock_of_the_host,
    "ping": _ping,
    "datagram_to_metadata": partial(_datagram, _METADATA, 443),
    "datagram_to_private": partial(_datagram, "10.66.0.1", 123),
    "datagram_by_ipv6": partial(_datagram, "fd00:ec2::254", 443),
    "datagram_to_declared": _datagram_to_declared,
    "multicast": _multicast,
    "broadcast": _broadcast,
    "unix_paths": _unix_paths,
    "abstract_sockets": _abstract_sockets,
    "other_namespaces": _other_namespaces,
    "descriptors_of_others": _descriptors_of_others,
    "tunnel": _tunnel,
    "copy_of_a_descriptor": _send_a_socket_to_init,
}
