"""The packets of a network namespace that begin something, such as the first one of a TCP connection.

The kernel leaves out the others, so that a slow reader loses none.
"""

import ctypes
import socket
import struct

_INTERFACE = "lo"  # the only one
_ALL_PROTOCOLS = 0x0003
_SOL_PACKET, _STATISTICS, _IGNORE_OUTGOING = 263, 6, 23
_SO_ATTACH_FILTER = 26
_TCP, _UDP, _ICMP, _ICMPV6 = 6, 17, 1, 58
_NAMES = {_TCP: "tcp", _UDP: "udp", _ICMP: "icmp", _ICMPV6: "icmp"}
_IPV4, _IPV6 = 4, 6
_HEADER_V6 = 40
_SYN, _SYN_ACK, _FLAGS = 0x02, 0x12, 13
# Instructions of the kernel's packet filter: load a byte (also of the TCP header), mask it, compare it, return.
_LOAD, _LOAD_TCP, _LENGTH, _AND, _EQUAL, _JUMP, _RETURN = 0x30, 0x50, 0xB1, 0x54, 0x15, 0x05, 0x06
_KEEP, _DROP = 0x40000, 0
_PROGRAM = (  # operation, how many instructions are left out if it is so and if not, operand
    (_LOAD, 0, 0, 0),
    (_AND, 0, 0, 0xF0),
    (_EQUAL, 0, 5, _IPV4 << 4),
    (_LOAD, 0, 0, 9),
    (_EQUAL, 0, 9, _TCP),
    (_LENGTH, 0, 0, 0),
    (_LOAD_TCP, 0, 0, _FLAGS),
    (_JUMP, 0, 0, 3),
    (_LOAD, 0, 0, 6),
    (_EQUAL, 0, 4, _TCP),
    (_LOAD, 0, 0, _HEADER_V6 + _FLAGS),
    (_AND, 0, 0, _SYN_ACK),
    (_EQUAL, 1, 0, _SYN),
    (_RETURN, 0, 0, _DROP),
    (_RETURN, 0, 0, _KEEP),
)


def first_packets() -> socket.socket:
    """Return a socket that receives them, each once: on loopback a packet goes and comes."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    sock.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _PROGRAM)
    kept = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(_PROGRAM), ctypes.addressof(kept))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    sock.bind((_INTERFACE, _ALL_PROTOCOLS))
    return sock


def lost(sock: socket.socket) -> int:
    """Return how many packets there was no room for since the last call."""
    _, dropped = struct.unpack("II", sock.getsockopt(_SOL_PACKET, _STATISTICS, 8))
    return int(dropped)


def beginning(packet: bytes) -> str:
    """Return the kind of a packet and where it goes; its protocol's number for other kinds. Pure."""
    if packet[0] >> 4 == _IPV4:
        start, kind = (packet[0] & 15) * 4, packet[9]
        address = socket.inet_ntop(socket.AF_INET, packet[16:20])
    else:
        start, kind = _HEADER_V6, packet[6]
        address = f"[{socket.inet_ntop(socket.AF_INET6, packet[24:40])}]"
    if kind not in (_TCP, _UDP):
        return f"{_NAMES.get(kind, f'protocol {kind}')} {address}"
    (port,) = struct.unpack_from("!H", packet, start + 2)
    return f"{_NAMES[kind]} {address}:{port}"
