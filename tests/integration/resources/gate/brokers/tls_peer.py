"""The far end of TLS, record by record in the test's hands."""

import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")
_READ = 16 * 1024


def stale_descriptors(loop: Any) -> list[int]:
    """Return those that a loop looks at though they are closed."""
    found = []
    for descriptor in list(loop._selector.get_map()):
        try:
            os.fstat(descriptor)
        except OSError:
            found.append(descriptor)
    return found


class TlsPeer:
    """A server over a socket that blocks; nothing is read or sent unless the test says so."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def shake_hands(self) -> None:
        """Do the handshake."""
        self._until_done(self._tls.do_handshake)

    def read(self, size: int = _READ) -> bytes:
        """Return some bytes, none behind the client's last word; ssl.SSLEOFError if there was none."""
        try:
            return self._until_done(lambda: self._tls.read(size))
        except ssl.SSLZeroReturnError:
            return b""

    def write(self, data: bytes) -> None:
        """Send these bytes."""
        self._tls.write(data)
        self._send()

    def say_end(self) -> None:
        """Say that nothing more comes, and do not wait for the answer."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()

    def _until_done(self, step: Callable[[], R]) -> R:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._send()
                self._receive()
                continue
            self._send()
            return done

    def _receive(self) -> None:
        if data := self.sock.recv(_READ):
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _send(self) -> None:
        if data := self._outgoing.read():
            self.sock.sendall(data)
