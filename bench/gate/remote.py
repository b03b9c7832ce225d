"""`python -m bench.gate.remote`: the remote server of the benchmark; prints its port.

A connection begins with a wish and a size. Bytes are received and then acknowledged, sent, sent for ever, or echoed.

Timing: until its standard input ends.
Model: a thread per connection.
Guarantee: best-effort.
Failure: a connection that breaks ends its thread.
"""

import contextlib
import socket
import struct
import sys
import threading

UP, DOWN, FOREVER, ECHO = b"u", b"d", b"f", b"e"
WISH = struct.Struct("!cQ")
DONE = b"k"
PIECE = 256 * 1024


def _serve(sock: socket.socket) -> None:
    with sock, contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wish, size = WISH.unpack(sock.recv(WISH.size, socket.MSG_WAITALL))
        if wish == UP:
            receive(sock, size)
            sock.sendall(DONE)
        elif wish == ECHO:
            while data := sock.recv(PIECE):
                sock.sendall(data)
        else:
            while wish == FOREVER or size > 0:
                send(sock, PIECE if wish == FOREVER else min(size, PIECE))
                size -= PIECE


def receive(sock: socket.socket, size: int) -> None:
    """Receive so many bytes."""
    room = bytearray(PIECE)
    while size > 0:
        if (received := sock.recv_into(room, min(size, PIECE))) == 0:
            raise ConnectionResetError("the other side has ended too early")
        size -= received


def send(sock: socket.socket, size: int) -> None:
    """Send so many bytes."""
    piece = memoryview(bytes(PIECE))
    while size > 0:
        sock.sendall(piece[:size])
        size -= PIECE


def _listen() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            sock, _ = server.accept()
            threading.Thread(target=_serve, args=(sock,), daemon=True).start()


if __name__ == "__main__":
    threading.Thread(target=_listen, daemon=True).start()
    sys.stdin.read()
