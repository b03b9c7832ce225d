"""Which port a service gets."""

import socket

from orchestrator.embedded.ports import choose_port


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
