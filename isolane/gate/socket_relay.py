"""Relay the bytes between a connection over the gate channel and a plain socket, in both directions.

Bytes go on at once, as they were read; only what has no room is copied and kept.

Timing: until both directions have ended.
Model: asyncio; callbacks of the loop and of the connection, no task for each direction.
Guarantee: bytes in order; an end of one direction is handed on, and the other one goes on.
Failure: OSError if one side breaks; both are reset then.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

from isolane.gate.connection import GateConnection

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, no time


async def relay_socket(
    connection: GateConnection, sock: socket.socket, *, on_end: Callable[[], object] = lambda: None
) -> None:
    """Relay until both directions have ended, and close the socket; raise OSError if one side broke.

    `on_end` is called when the socket's peer has ended its direction.
    """
    relay = _SocketRelay(connection, sock, on_end)
    try:
        connection.attach(relay)
        await relay.ended
    except BaseException:
        connection.reset()
        # Its peer is to see a broken connection, not an end in order.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        raise
    finally:
        relay.close()


class _SocketRelay:
    def __init__(
        self, connection: GateConnection, sock: socket.socket, on_end: Callable[[], object]
    ) -> None:
        sock.setblocking(False)  # noqa: FBT003 - has no name in Python
        self._connection = connection
        self._sock = sock
        self._on_end = on_end
        self._descriptor = sock.fileno()  # asyncio would make a text of the socket at each use
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._is_reading = False
        self._has_room = True  # else the loop calls when it has
        self._is_received = False  # all that the peer sends
        self._is_sent = False  # all that it gets
        self.resume()

    def close(self) -> None:
        """Close the socket."""
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._sock.close()

    # --- from the socket
    def resume(self) -> None:
        """Read from the socket."""
        if not (self._is_reading or self._is_received or self.ended.done()):
            self._is_reading = True
            self._loop.add_reader(self._descriptor, self._receive)

    def _pause(self) -> None:
        self._is_reading = False
        self._loop.remove_reader(self._descriptor)

    def _receive(self) -> None:
        if not (room := self._connection.room()):
            self._pause()
            return
        try:
            size = self._sock.recv_into(room)
        except BlockingIOError:
            return
        except OSError as error:
            self._break(error)
            return
        if not size:
            self._is_received = True
            self._pause()
            self._connection.write_eof()
            self._on_end()
            self._end_if_over()
        else:
            self._connection.push(room[:size])

    # --- to the socket
    def consume(self, data: memoryview) -> int:
        """Send as many of these bytes as the socket has room for."""
        if not self._has_room or self.ended.done():
            return 0
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._break(error)
            return 0
        if sent < len(data):
            self._has_room = False
            self._loop.add_writer(self._descriptor, self._send_on)
        return sent

    def _send_on(self) -> None:
        self._has_room = True
        self._loop.remove_writer(self._descriptor)
        self._connection.deliver()

    def note_end(self) -> None:
        """Hand the end of the other side on; its reset ends both directions, in order if it had ended before."""
        if self._connection.has_left:
            self._finish()
        elif self._connection.is_reset:
            self._break(ConnectionResetError("the connection was reset"))
        elif not self._is_sent and not self.ended.done():
            self._is_sent = True
            with contextlib.suppress(OSError):  # the peer is gone, which reading tells
                self._sock.shutdown(socket.SHUT_WR)
            self._end_if_over()

    def _end_if_over(self) -> None:
        if self._is_received and self._is_sent:
            self._finish()

    def _finish(self) -> None:
        if not self.ended.done():
            self._pause()
            self.ended.set_result(None)

    def _break(self, error: OSError) -> None:
        if not self.ended.done():
            self._pause()
            self.ended.set_exception(error)
