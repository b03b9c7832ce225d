"""`python -m tests.integration.helpers.searched_process`: hides secrets in places of itself, and searches itself.

It reads for each place the needles, and the secret reversed and in Base64, so that it lies nowhere else.
"""

import base64
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from tests.secret_search import Search

KEPT: list[Any] = []
PIPES: list[tuple[int, int]] = []
SOCKETS: list[tuple[socket.socket, socket.socket]] = []


def _nowhere(_: bytearray) -> None:
    """Hide nothing."""


def _in_an_object(secret: bytearray) -> None:
    KEPT.append({"password": secret.decode()})


def _in_freed_memory(secret: bytearray) -> None:
    """Keep it where no object of Python's is."""
    import ctypes

    KEPT.append(ctypes.create_string_buffer(bytes(len(secret))))
    for number, byte in enumerate(secret):
        KEPT[-1][number] = bytes([byte])


def _in_environ(secret: bytearray) -> None:
    os.environ["PASSWORD"] = secret.decode()


def _in_a_file(secret: bytearray) -> None:
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(secret)


def _in_a_deleted_file(secret: bytearray) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(secret)
        file.flush()
        KEPT.append(os.dup(file.fileno()))


def _in_a_pipe(secret: bytearray) -> None:
    PIPES.append(os.pipe())
    os.write(PIPES[0][1], secret)


def _in_a_socket(secret: bytearray) -> None:
    SOCKETS.append(socket.socketpair())
    SOCKETS[0][0].send(secret)


PLACES: dict[str, Callable[[bytearray], None]] = {
    "nowhere": _nowhere,
    "object": _in_an_object,
    "memory": _in_freed_memory,
    "environ": _in_environ,
    "file": _in_a_file,
    "deleted file": _in_a_deleted_file,
    "pipe": _in_a_pipe,
    "socket": _in_a_socket,
}


def main() -> None:
    """Hide, search, print."""
    given = json.load(sys.stdin)
    for place, secret in given.items():
        _hide(place, secret["reversed"])
    needles = [needle for secret in given.values() for needle in secret["needles"]]
    told = Search(needles, [tempfile.gettempdir()]).everything()
    # Taken out afterwards: the search has taken nothing.
    (reading, _), (_, receiving) = PIPES[0], SOCKETS[0]
    left = [len(os.read(reading, 100)), len(receiving.recv(100))]
    json.dump({**told, "left": left}, sys.stdout)


def _hide(place: str, reversed_secret: str) -> None:
    secret = bytearray(base64.b64decode(reversed_secret))
    secret.reverse()  # in place
    PLACES[place](secret)
    secret[:] = bytes(len(secret))


if __name__ == "__main__":
    main()
