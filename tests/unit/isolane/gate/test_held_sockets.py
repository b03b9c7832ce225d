"""isolane.gate.held_sockets: a socket that its program has closed is not held, however it was connected."""

import socket

import pytest

from isolane.gate.held_sockets import ends_of_peer, held_sockets


@pytest.mark.parametrize(
    ("listening", "address", "client"),
    [
        (socket.AF_INET, "127.0.0.1", (socket.AF_INET, "127.0.0.1")),
        (socket.AF_INET, "127.0.0.1", (socket.AF_INET6, "::ffff:127.0.0.1")),
        (socket.AF_INET6, "::1", (socket.AF_INET6, "::1")),
    ],
)
def test_a_peer_is_held_until_it_is_closed(
    listening: socket.AddressFamily, address: str, client: tuple[socket.AddressFamily, str]
) -> None:
    with socket.create_server((address, 0), family=listening) as server:
        with socket.socket(client[0]) as sock:
            sock.connect((client[1], server.getsockname()[1]))
            accepted, _ = server.accept()
            with accepted:
                ends = ends_of_peer(accepted)
                assert ends in held_sockets()
                sock.shutdown(socket.SHUT_WR)
                assert ends in held_sockets()
                sock.close()
                assert ends not in held_sockets()
