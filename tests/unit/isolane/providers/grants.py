"""Grants as a worker would hand them over, and remote servers that misbehave below HTTP."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from isolane.protocol import Grant
from isolane.tags import tag

TAG = tag(tenant_id="acme", execution_id="0" * 32, epoch=2)
SECRET = "s3cret-token-value"


def http_grant(base_url: str, *, address: str = "127.0.0.1", **config: Any) -> Grant:
    """A grant of an HTTP service; with a token wherever auth needs one."""
    secrets = {"token": SECRET} if config.get("auth", "none") != "none" else {}
    return Grant(
        name="shop",
        type="http_api",
        definition="shop-api",
        scope="execution",
        config={"base_url": base_url, **config},
        secrets=secrets,
        address=address,
    )


def model_grant(**config: Any) -> Grant:
    """A grant of a model; with a key where there is a network."""
    echo = config.get("provider") == "echo"
    return Grant(
        name="model",
        type="model",
        definition="gpt",
        scope="execution",
        config={"model": "small", **config},
        secrets={} if echo else {"api_key": SECRET},
        address="" if echo else "127.0.0.1",
    )


class RawServer:
    """A server that does with each connection what it is told."""

    def __init__(self, serve: Callable[[socket.socket], object]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.ended = threading.Event()  # set when it is time to stop
        self.accepted = threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def serving(self) -> Iterator["RawServer"]:
        """Serve until the block ends."""
        threads: list[threading.Thread] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = self._listener.accept()
                    self.accepted.release()
                    threads.append(threading.Thread(target=self._work, args=(connection,)))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield self
        finally:
            self.ended.set()
            self._listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            self._listener.close()
            for thread in threads:
                thread.join()

    def _work(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._serve(connection)


def read_request(connection: socket.socket) -> bytes:
    """Read up to the end of a request's headers."""
    data = b""
    while b"\r\n\r\n" not in data and (part := connection.recv(65_536)):
        data += part
    return data
