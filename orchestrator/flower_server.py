"""Flower's HTTP server, with limits before its login."""

from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application

MAX_CONNECTIONS = 500
MAX_HEADER_BYTES = 65_536
MAX_BODY_BYTES = 65_536  # Flower is read-only: requests are small
HEADER_SECONDS = 10  # also the time between two requests
BODY_SECONDS = 10


class FlowerServer(HTTPServer):
    """Tornado's server with a limit of connections: a new one replaces the oldest."""

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """Set up, the way Tornado does."""
        super().initialize(*args, **kwargs)
        self._streams: list[IOStream] = []

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a new connection."""
        if len(self._streams) >= MAX_CONNECTIONS:
            self._streams = [one for one in self._streams if not one.closed()]
        if len(self._streams) >= MAX_CONNECTIONS:
            self._streams.pop(0).close()
        self._streams.append(stream)
        super().handle_stream(stream, address)


def listen(dashboard: Application, address: str, port: int) -> FlowerServer:
    """Serve the dashboard as soon as the event loop runs."""
    sockets = bind_sockets(port, address=address)
    server = FlowerServer(
        dashboard,
        max_header_size=MAX_HEADER_BYTES,
        max_body_size=MAX_BODY_BYTES,
        idle_connection_timeout=HEADER_SECONDS,
        body_timeout=BODY_SECONDS,
    )
    server.add_sockets(sockets)
    return server
