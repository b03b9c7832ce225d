"""The ways by declared resources, against servers without a gate: the ways notice what they have reached."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import redis

from tests.forbidden_targets import REACHED
from tests.integration.isolane.gate.forbidden_nodes import tried
from tests.integration.isolane.gate.forbidden_ways.http import HTTP
from tests.integration.isolane.gate.forbidden_ways.way import was_reached

OWN = "shop"
# Commands that an administrator of the test's server may give without harm to other tests.
HARMLESS = [
    "cache_client_list", "cache_acl_list", "cache_config_get", "cache_keys", "cache_scan", "cache_size",
    "cache_get_of_another_run", "cache_script", "cache_script_hidden", "cache_subscribe", "cache_monitor",
]  # fmt: skip
# They answer whoever may connect.
SESSIONS = ["database_another", "database_none", "database_superuser", "database_options"]
OWN_CONNECTIONS = {"http_follow_a_redirect", "http_tls_for_another_name"}


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Answer each connection to a port until the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def reached(names: Any, facts: dict[str, Any]) -> set[str]:
    """Return the ways that have reached something."""
    return {name for name, end in tried(list(names), facts).items() if was_reached(end)}


def at(port: int, **more: Any) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": port, **more}


def test_an_answer_of_a_forbidden_target_is_noticed() -> None:
    def pass_on(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + REACHED)

    with serving(pass_on) as port:
        assert reached(HTTP, {"http": at(port)}) == set(HTTP) - OWN_CONNECTIONS


@pytest.mark.parametrize(("answered", "expected"), [("postgres", set(SESSIONS)), (OWN, set())])
def test_a_session_of_another_login_or_database_is_noticed(answered: str, expected: Any) -> None:
    def converse(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"R" + struct.pack("!II", 8, 0) + READY)
        connection.recv(4096)
        value = answered.encode()
        row = struct.pack("!HI", 1, len(value)) + value
        connection.sendall(b"D" + struct.pack("!I", 4 + len(row)) + row + READY)

    with serving(converse) as port:
        assert reached(SESSIONS, {"database": at(port, user=OWN, dbname=OWN)}) == expected


READY = b"Z" + struct.pack("!I", 5) + b"I"


def test_an_administrator_of_a_cache_reaches_what_is_forbidden(run_cache: "redis.Redis") -> None:
    options = run_cache.connection_pool.connection_kwargs
    run_cache.set("run:other:key", "theirs")
    cache = at(options["port"], login=["default", options["password"]])
    assert reached(HARMLESS, {"cache": cache}) == set(HARMLESS)
