"""In the network of the tests forbidden targets listen and count, and nothing leaves it."""

from tests.forbidden_targets import FORBIDDEN, PORTS
from tests.own_network import run_in_own_network

FUNCTIONS = "tests.integration.helpers.network"
METADATA = "169.254.169.254"


def test_each_target_counts_who_reaches_it() -> None:
    told = run_in_own_network(f"{FUNCTIONS}:reach_everything")
    assert len(told["returned"]) == 1
    assert "reached a forbidden target" in told["returned"][0]
    counts, attempts = told["connections"], told["attempts"]
    for port in PORTS:
        assert counts.pop(f"tcp {METADATA}:{port}") == 2  # and by its mapped address
    assert counts.pop("udp port 123") == 1
    assert set(counts.values()) == {1}
    assert len(counts) == (len(FORBIDDEN) - 2) * len(PORTS)
    assert attempts["tcp 10.66.0.1:81"] == 1
    assert attempts["udp 8.8.8.8:123"] == 1
    assert attempts["tcp [fe80::1]:80"] == 1
