"""A name server at every address of `tests.own_network`: it knows what it is told, and remembers the questions.

Timing: as long as its block. Model: one thread. Guarantee: a name is remembered before it is answered. Failure: a
packet that is no question is remembered as such, and not answered.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Self

from tests.answering_datagrams import answer, datagram_socket, question

_HEADER = struct.Struct("!6H")
_ANSWER, _RECURSION, _NO_SUCH_NAME = 0x8000, 0x0180, 3
_A, _AAAA, _IN = 1, 28, 1
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_PORT = 53
_FIRST_LABEL = 12


class NameServer:
    """Answers by UDP from `addresses`, which may change at any time; other names do not exist."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.asked: list[str] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[Self]:
        """Answer until the block ends."""
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(datagram_socket(family, _PORT)) for family in _FAMILIES]
            ending, ended = map(stack.enter_context, socket.socketpair())
            thread = threading.Thread(target=self._serve, args=(sockets, ended))
            thread.start()
            try:
                yield self
            finally:
                ending.send(b"!")
                thread.join()

    def _serve(self, sockets: list[socket.socket], ended: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([*sockets, ended], [], [])
            if ended in ready:
                return
            for sock in ready:
                asked = question(sock)
                with contextlib.suppress(OSError):
                    if answered := self._answer(asked[0]):
                        answer(sock, asked, answered)

    def _answer(self, packet: bytes) -> bytes | None:
        try:
            number, _, _, _, _, _ = _HEADER.unpack_from(packet)
            name, end = _name(packet)
            (kind, _) = struct.unpack_from("!HH", packet, end)
        except (struct.error, IndexError, UnicodeDecodeError):
            self.asked.append("no question")
            return None
        self.asked.append(name)
        known = self.addresses.get(name.rstrip(".").lower())
        records = [_record(address) for address in known or () if _kind(address) == kind]
        flags = _ANSWER | _RECURSION | (_NO_SUCH_NAME if known is None else 0)
        head = _HEADER.pack(number, flags, 1, len(records), 0, 0)
        return head + packet[_FIRST_LABEL : end + 4] + b"".join(records)


def _name(packet: bytes) -> tuple[str, int]:
    """Return the name of the question, and where it ends."""
    labels, place = [], _FIRST_LABEL
    while length := packet[place]:
        labels.append(packet[place + 1 : place + 1 + length].decode("ascii"))
        place += 1 + length
    return ".".join(labels), place + 1


def _kind(address: str) -> int:
    return _AAAA if ":" in address else _A


def _record(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    data = socket.inet_pton(family, address)
    pointer = 0xC000 | _FIRST_LABEL
    return struct.pack("!HHHIH", pointer, _kind(address), _IN, 0, len(data)) + data
