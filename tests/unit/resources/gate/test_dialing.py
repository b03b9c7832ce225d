"""resources.gate.dialing: every connection is checked, and goes to the address that was."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from resources.gate import dialing
from resources.gate.dialing import dial
from resources.gate.plan import Route
from resources.gate.record import ConnectionEnded, ConnectionReason

PUBLIC, PORT = "93.184.215.14", 8443
REFUSED = [
    "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1",  # this machine
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "fd00::1", "::ffff:10.0.0.1", "100.64.0.1",  # private
    "169.254.1.1", "fe80::1", "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1",  # what leads to such a one
]  # fmt: skip


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """The places to which a connection was made; no packet is sent."""
    places: list[tuple[str, int]] = []
    with socket.socket() as sock:

        async def connect(address: str, port: int) -> socket.socket:
            places.append((address, port))
            return sock

        monkeypatch.setattr(dialing, "_connected", connect)
        yield places


def a_route(address: str, **changes: Any) -> Route:
    fields: dict[str, Any] = {
        "definition": "api", "host": "api.example.com", "port": PORT, "server_port": PORT, "address": address,
        "broker": None, "is_platforms": False,
    }  # fmt: skip
    return Route(**fields | changes)


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_public_is_not_connected_to(
    address: str, settings: Settings, connected: list[tuple[str, int]]
) -> None:
    settings.RESOURCE_NETWORKS = []
    with pytest.raises(ConnectionEnded) as raised:
        asyncio.run(dial(a_route(address)))
    assert raised.value.reason is ConnectionReason.ADDRESS_REFUSED
    assert connected == []


def test_a_public_address_and_what_the_operator_has_opened_are(
    settings: Settings, connected: list[tuple[str, int]]
) -> None:
    settings.RESOURCE_NETWORKS = ["10.0.0.0/8"]
    for address in (PUBLIC, "10.1.2.3", "::ffff:10.1.2.3"):
        asyncio.run(dial(a_route(address)))
    assert connected == [(PUBLIC, PORT), ("10.1.2.3", PORT), ("::ffff:10.1.2.3", PORT)]


@pytest.mark.parametrize("host", ["api.example.com", "localhost"])
def test_the_platforms_own_servers_are_not_whatever_is_open(
    host: str, settings: Settings, connected: list[tuple[str, int]]
) -> None:
    settings.RESOURCE_NETWORKS = ["0.0.0.0/0", "::/0"]
    settings.OWN_ADDRESSES = [("127.0.0.1", PORT)]
    for address in ("127.0.0.1", "127.5.5.5", "::1", "0.0.0.0", "::ffff:127.0.0.1"):
        with pytest.raises(ConnectionEnded) as raised:
            asyncio.run(dial(a_route(address, host=host)))
        assert raised.value.reason is ConnectionReason.ADDRESS_REFUSED
    assert connected == []


def test_the_run_cache_is_connected_to_though_it_is_the_platforms(
    connected: list[tuple[str, int]],
) -> None:
    asyncio.run(dial(a_route("127.0.0.1", server_port=6379, is_platforms=True)))
    assert connected == [("127.0.0.1", 6379)]
