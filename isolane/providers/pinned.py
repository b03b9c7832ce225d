"""Connections of one HTTP client: to one address only, within the request's time, and none after it is closed.

DNS is not asked; TLS and the Host header keep the name. Where a client is clear, the gate at the address speaks TLS.
Closing also ends a connection that another thread waits on or is just opening.

Timing: connecting, reading and writing block until they are done, or until the deadline of `until`.
Model: blocking sockets, used from any thread; each thread has its own deadline.
Guarantee: connects to the pinned host, port and address only; closing ends every connection.
Failure: errors of httpcore for timeouts and broken connections; a refused address is a ConnectError.
"""

import contextlib
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore
from httpcore import SOCKET_OPTION

_LEAST = 0.001  # seconds; a timeout of zero would make the socket non-blocking


class PinnedBackend(httpcore.NetworkBackend):
    """Opens connections to one host and port."""

    def __init__(self, *, host: str, port: int, address: str, is_clear: bool = False) -> None:
        self._origin = (host, port)
        self.is_clear = is_clear
        self._address = address or host
        self._inner = httpcore.SyncBackend()
        self._time = threading.local()
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[PinnedStream] = weakref.WeakSet()
        self._closed = False

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the pinned address; refuse any other host."""
        if (host, port) != self._origin:
            raise httpcore.ConnectError(f"{host}:{port} is not {':'.join(map(str, self._origin))}")
        self._refuse_closed()
        inner = self._inner.connect_tcp(
            self._address,
            port,
            timeout=self.left(timeout, httpcore.ConnectTimeout),
            local_address=local_address,
            socket_options=socket_options,
        )
        stream = PinnedStream(inner, self)
        self._keep(stream)
        return stream

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Refuse: a Unix socket is not a remote server."""
        raise httpcore.ConnectError("Unix sockets are refused")

    @contextlib.contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Set this thread's deadline, by time.monotonic(), for the block."""
        before = getattr(self._time, "deadline", None)
        self._time.deadline = deadline
        try:
            yield
        finally:
            self._time.deadline = before

    def left(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
        """Return the timeout of one operation, or raise the error if no time is left."""
        deadline: float | None = getattr(self._time, "deadline", None)
        if deadline is None:
            return timeout
        left = deadline - time.monotonic()
        if left <= 0:
            raise error("the time for the whole request is over")
        return max(left if timeout is None else min(timeout, left), _LEAST)

    def close(self) -> None:
        """End every connection, and open none from now on."""
        with self._lock:
            self._closed = True
            streams = list(self._open)
        for stream in streams:
            stream.close()

    def _keep(self, stream: "PinnedStream") -> None:
        with self._lock:
            self._open.add(stream)
        self.after_opening(stream)

    def after_opening(self, stream: "PinnedStream") -> None:
        """End a connection that was being opened while everything was closed."""
        if self._closed:
            stream.close()
            self._refuse_closed()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise httpcore.ConnectError("the client is closed")


class PinnedStream(httpcore.NetworkStream):
    """One connection; TLS is started in place, so that closing it always closes the socket."""

    def __init__(self, inner: httpcore.NetworkStream, backend: PinnedBackend) -> None:
        self._inner = inner
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read the available bytes, or wait for some."""
        return self._inner.read(max_bytes, self._backend.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes."""
        self._inner.write(buffer, self._backend.left(timeout, httpcore.WriteTimeout))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Start TLS with a remote server that proves to have that name, unless the gate does that."""
        if self._backend.is_clear:
            return self
        left = self._backend.left(timeout, httpcore.ConnectTimeout)
        self._inner = self._inner.start_tls(ssl_context, server_hostname, left)
        self._backend.after_opening(self)
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return the information about the socket that httpcore asks for."""
        return self._inner.get_extra_info(info)

    def close(self) -> None:
        """Shut it down and close it: closing alone would not end a read in another thread."""
        inner = self._inner.get_extra_info("socket")
        with contextlib.suppress(OSError):
            inner.shutdown(socket.SHUT_RDWR)
        self._inner.close()
