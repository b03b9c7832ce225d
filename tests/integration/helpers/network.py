"""The function that the test of `tests.own_network` calls there."""

import socket
from typing import Any

from tests.forbidden_targets import FORBIDDEN, PORTS, ForbiddenTargets

SECONDS = 5


def reach_everything(targets: ForbiddenTargets, _: Any) -> list[str]:
    """Connect to each target directly; return their greetings."""
    greetings = set()
    for address in FORBIDDEN:
        for port in PORTS:
            with socket.create_connection((address, port), timeout=SECONDS) as sock:
                greetings.add(sock.recv(512).decode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.sendto(b"?", ("8.8.8.8", 123))
        greetings.add(sock.recv(512).decode())
    with socket.socket(socket.AF_INET) as sock:  # where nobody listens
        assert sock.connect_ex(("10.66.0.1", 81)) != 0
    return sorted(greetings)
