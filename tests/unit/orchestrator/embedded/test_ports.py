"""The choice of a service's port."""

import errno
import socket

import pytest

from orchestrator.embedded.ports import ReservedPort, choose_port


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_free_port_is_taken_as_preferred() -> None:
    with _listening() as server:
        port = server.getsockname()[1]

    assert choose_port(port) == (port, False)


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    with _listening() as server:
        preferred = server.getsockname()[1]
        port, taken = choose_port(preferred)

    assert taken
    assert port != preferred
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_port_taken_on_all_addresses_counts_as_taken() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        _, taken = choose_port(server.getsockname()[1])

    assert taken


def test_a_reserved_port_is_for_a_server_that_is_told_its_number() -> None:
    reserved = ReservedPort()
    address = ("127.0.0.1", reserved.number)
    for _ in range(2):  # a server that was started again
        with socket.create_server(address), socket.create_connection(address, timeout=5) as client:
            assert client.getpeername() == address
    with socket.socket() as other, pytest.raises(OSError) as taken:
        other.bind(address)
    assert taken.value.errno == errno.EADDRINUSE


def test_a_reserved_port_is_given_back() -> None:
    number = ReservedPort().number
    with socket.socket() as other:
        other.bind(("127.0.0.1", number))


def test_two_reserved_ports_are_two() -> None:
    held = [ReservedPort() for _ in range(20)]
    assert len({one.number for one in held}) == 20
