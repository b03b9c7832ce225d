"""UDP sockets at every address, whose answers come from the address that was asked, as clients expect."""

import socket
from typing import Any

_PKTINFO = {socket.AF_INET: (0, 8), socket.AF_INET6: (41, 50)}  # level, and number of the option
_RECVPKTINFO = {socket.AF_INET: (0, 8), socket.AF_INET6: (41, 49)}
_FREEBIND = {
    socket.AF_INET: (0, 15),
    socket.AF_INET6: (41, 78),
}  # addresses that are only routed here
_ANY = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
_MOST = 65535
_ANCILLARY = 256

Question = tuple[bytes, list[tuple[int, int, bytes]], Any]  # the packet, where it came to, and from


def datagram_socket(family: socket.AddressFamily, port: int) -> socket.socket:
    """Return a socket for all addresses of a family."""
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    for level, number in (_RECVPKTINFO[family], _FREEBIND[family]):
        sock.setsockopt(level, number, 1)
    sock.bind((_ANY[family], port))
    return sock


def question(sock: socket.socket) -> Question:
    """Receive a packet."""
    packet, ancillary, _, peer = sock.recvmsg(_MOST, _ANCILLARY)
    return packet, ancillary, peer


def answer(sock: socket.socket, question: Question, text: bytes) -> None:
    """Send an answer from where the question came to."""
    _, ancillary, peer = question
    option = _PKTINFO[socket.AddressFamily(sock.family)]
    found = [data for level, number, data in ancillary if (level, number) == option]
    if found and sock.family == socket.AF_INET:
        found = [bytes(4) + found[0][8:12] + bytes(4)]  # interface, source, unused
    sock.sendmsg([text], [(*option, data) for data in found[:1]], 0, peer)
