"""The servers that no run may reach: they listen at every address of `tests.own_network`, and count who comes.

Timing: as long as its block. Model: a thread; the name server in another. Guarantee: what was sent before `told` is
called is in it. Failure: bubble.
"""

import contextlib
import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

from tests.answering_datagrams import answer, datagram_socket, question
from tests.first_packets import beginning, first_packets, lost
from tests.name_server import NameServer

# Addresses that the gate refuses, whatever a run declares.
PRIVATE = ("10.66.0.1", "172.16.66.1", "192.168.66.1", "100.64.0.1", "fd12:3456::1")
METADATA = ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200")
PUBLIC = ("8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111")  # that nobody declared
TRANSLATED = ("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::ffff:169.254.169.254")
LINK_LOCAL = ("fe80::1%lo",)
FORBIDDEN = (*PRIVATE, *METADATA, *PUBLIC, *TRANSLATED, *LINK_LOCAL)
# Beside 53 for names: what there is to reach in a network.
PORTS = (22, 25, 53, 80, 443, 853, 2375, 5432, 6379, 6443, 8080, 11211)
DATAGRAM_PORTS = (123, 443, 514)

_MOST = 65535
_COUNTED, _END = b"?", b"!"  # asked of the thread
REACHED = b"reached a forbidden target"
# Of every target: an answer of HTTP, too, so that a client in between passes it on.
_GREETING = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(REACHED), REACHED)


class ForbiddenTargets:
    """Counts by target: `connections`, also datagrams; and as `attempts` first packets, whether or not one listens.

    An answer by UDP begins something, too, as it looks to the kernel.
    """

    def __init__(self) -> None:
        self.names = NameServer()
        self._counts = {"connections": Counter[str](), "attempts": Counter[str]()}

    @contextlib.contextmanager
    def listening(self) -> Iterator[Self]:
        """Listen until the block ends."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.names.listening())
            listeners = [stack.enter_context(sock) for sock in _listeners()]
            self._packets = stack.enter_context(first_packets())
            self._waking, waking = map(stack.enter_context, socket.socketpair())
            thread = threading.Thread(target=self._serve, args=(listeners, waking))
            thread.start()
            try:
                yield self
            finally:
                self._ask(_END)
                thread.join()

    def told(self) -> dict[str, Any]:
        """Return the counts, and the names that the name server was asked for."""
        self._ask(_COUNTED)
        assert lost(self._packets) == 0, "packets were not counted"
        return {
            **{name: dict(counts) for name, counts in self._counts.items()},
            "names": list(self.names.asked),
        }

    def _ask(self, what: bytes) -> None:
        """Return when all that was there before has been counted."""
        self._waking.send(what)
        self._waking.recv(1)

    def _serve(self, listeners: list[socket.socket], waking: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([*listeners, self._packets, waking], [], [])
            for sock in ready:
                if sock is self._packets:
                    self._counts["attempts"][beginning(self._packets.recv(_MOST))] += 1
                elif sock is not waking:
                    self._welcome(sock)
            if ready == [waking]:  # and nothing else is left
                asked = waking.recv(1)
                waking.send(asked)
                if asked == _END:
                    return

    def _welcome(self, listener: socket.socket) -> None:
        if listener.type == socket.SOCK_STREAM:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                self._counts["connections"][f"tcp {_shown(connection)}"] += 1
                connection.send(_GREETING)
            return
        asked = question(listener)
        self._counts["connections"][f"udp port {listener.getsockname()[1]}"] += 1
        with contextlib.suppress(OSError):
            answer(listener, asked, _GREETING)


def _listeners() -> Iterator[socket.socket]:
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        for port in PORTS:
            yield socket.create_server(
                (address, port), family=family, backlog=64, dualstack_ipv6=False
            )
        for port in DATAGRAM_PORTS:
            yield datagram_socket(family, port)


def _shown(connection: socket.socket) -> str:
    address, port = connection.getsockname()[:2]
    host = address.partition("%")[0]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
