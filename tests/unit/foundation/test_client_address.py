"""The address of a request's caller: never one that the caller made up."""

import pytest

from foundation.client_address import client_address, counted_as, networks_of

TRUSTED = networks_of(["10.0.0.0/8", "fd00::/8", "127.0.0.1"])
CALLER = "203.0.113.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        (CALLER, "", CALLER),
        (CALLER, "198.51.100.1", CALLER),  # made up: its sender is not trusted
        ("10.0.0.1", CALLER, CALLER),
        ("10.0.0.1", f"1.1.1.1, {CALLER}", CALLER),  # the left one is what the caller said
        ("10.0.0.1", f"1.1.1.1, {CALLER}, 10.0.0.2", CALLER),  # two proxies
        ("10.0.0.1", f"1.1.1.1, {CALLER}:4711", CALLER),  # with a port
        ("fd00::1", "[2001:db8::5]:4711", "2001:db8::5"),
        ("::ffff:10.0.0.1", CALLER, CALLER),  # IPv4 on a socket of IPv6
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", f"{CALLER}, unknown", "10.0.0.1"),  # what lies before it is anybody's word
        ("", CALLER, CALLER),  # a Unix socket, and loopback is trusted
        ("10.0.0.1", ",".join(["10.0.0.2"] * 30 + [CALLER]), CALLER),
    ],
)
def test_the_address_of_the_caller(peer: str, forwarded: str, found: str) -> None:
    assert client_address(peer, forwarded, TRUSTED) == found


@pytest.mark.parametrize("peer", ["10.0.0.1", "127.0.0.1", ""])
def test_nobody_is_trusted_unless_said(peer: str) -> None:
    assert client_address(peer, CALLER, ()) == (peer or "127.0.0.1")


def test_an_ipv6_network_counts_as_one() -> None:
    assert counted_as("2001:db8:1:2:3:4:5:6") == counted_as("2001:db8:1:2::9")
    assert counted_as("2001:db8:1:2::9") != counted_as("2001:db8:1:3::9")
    assert counted_as(CALLER) == CALLER
