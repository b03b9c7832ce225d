"""Ways to an address: each forbidden one, and spellings that mean another than they seem to."""

import contextlib
import socket
from functools import partial
from typing import Any

from tests.forbidden_targets import FORBIDDEN, PORTS
from tests.integration.isolane.gate.forbidden_ways.way import (
    SECONDS,
    Facts,
    NotReached,
    Way,
    connected,
    first_reached,
    greeted,
)

_METADATA = "169.254.169.254"
_SPELLINGS = {  # that getaddrinfo takes for the metadata address, a private one or this machine
    "decimal": "2852039166",
    "octal": "0251.0376.0251.0376",
    "hexadecimal": "0xa9fea9fe",
    "short": "169.254.43518",
    "mixed": "0xa9.254.0251.254",
    "private_decimal": "172097537",
    "loopback_short": "127.1",
    "zero": "0",
    "mapped_hexadecimal": "::ffff:a9fe:a9fe",
    "compatible": "::169.254.169.254",
    "nat64_own": "64:ff9b:1::a9fe:a9fe",
    "6to4_of_private": "2002:a42:1::1",
    "teredo": "2001:0:a9fe:a9fe::1",
    "multicast": "224.0.0.251",
    "broadcast": "255.255.255.255",
    "this_network": "0.1.2.3",
    "fullwidth": "\uff11\uff16\uff19.\uff12\uff15\uff14.\uff11\uff16\uff19.\uff12\uff15\uff14",
    "idn_dots": "169\u3002254\u3002169\u3002254",
    "trailing_dot": "169.254.169.254.",
    "with_zone": "fe80::1%1",
    "with_bytes": "169.254.169.254\0.example.com",
    "with_blank": "169.254.169.254 example.com",
}
_UNDECLARED_PORTS = (22, 80, 5432, 6379, 8000, 9999)


def _connect(address: str, facts: Facts) -> str:
    return greeted(connected(address, 80))


def _spelled(text: str, facts: Facts) -> str:
    """Connect to all that the text means."""
    try:
        found = socket.getaddrinfo(text, 80, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NotReached(f"no address: {error}") from None
    return first_reached(partial(_connect_to, *each) for each in found)


def _connect_to(family: int, kind: int, protocol: int, _: str, address: Any) -> str:
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(SECONDS)
        sock.connect(address)
        return greeted(sock)


def _every_port(facts: Facts) -> str:
    """Try all ports that a forbidden target has."""
    return first_reached(partial(_greeting, _METADATA, port) for port in PORTS)


def _greeting(host: str, port: int) -> str:
    return greeted(socket.create_connection((host, port), SECONDS))


def _declared_name_at_another_port(facts: Facts) -> str:
    host, declared = facts["http"]["host"], facts["http"]["port"]
    ports = [port for port in _UNDECLARED_PORTS if port != declared]
    return first_reached(partial(_greeting, host, port) for port in ports)


def _loopback_addresses(facts: Facts) -> str:
    """Try the addresses at which a gate could listen for others, at ports that nobody declared."""
    return first_reached(
        partial(_greeting, f"127.0.0.{number}", port)
        for number in range(1, 32)
        for port in _UNDECLARED_PORTS
    )


def _source_address(facts: Facts) -> str:
    """Send from an address of the forbidden network."""
    return _bound("10.66.0.2", "10.66.0.1")


def _source_loopback(facts: Facts) -> str:
    return _bound("127.0.0.1", _METADATA)


def _bound(source: str, target: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        sock.bind((source, 0))
        sock.connect((target, 80))
        return greeted(sock)


def _free_bind(facts: Facts) -> str:
    """Bind an address that is not there, as transparent proxies do."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        sock.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
        sock.bind(("10.66.0.2", 0))
        sock.connect(("10.66.0.1", 80))
        return greeted(sock)


def _named_device(facts: Facts) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0")
        sock.connect((_METADATA, 80))
        return greeted(sock)


def _fast_open(facts: Facts) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS)
        with contextlib.suppress(BlockingIOError):  # a socket with a timeout does not wait here
            sock.sendto(b"GET / HTTP/1.0\r\n\r\n", socket.MSG_FASTOPEN, (_METADATA, 80))
        return greeted(sock)


def _not_waiting(facts: Facts) -> str:
    """Connect without waiting, which programs that check the first answer only do not notice."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        sock.connect_ex((_METADATA, 80))
        sock.settimeout(SECONDS)
        return greeted(sock)


ADDRESSES: dict[str, Way] = {
    **{f"connect_{address}": partial(_connect, address) for address in FORBIDDEN},
    **{f"spelled_{name}": partial(_spelled, text) for name, text in _SPELLINGS.items()},
    "connect_unspecified": partial(_connect, "0.0.0.0"),
    "connect_unspecified_ipv6": partial(_connect, "::"),
    "connect_loopback_ipv6": partial(_connect, "::1"),
    "connect_mapped_loopback": partial(_connect, "::ffff:127.0.0.1"),
    "every_port": _every_port,
    "declared_name_at_another_port": _declared_name_at_another_port,
    "loopback_addresses": _loopback_addresses,
    "source_address": _source_address,
    "source_loopback": _source_loopback,
    "free_bind": _free_bind,
    "named_device": _named_device,
    "fast_open": _fast_open,
    "not_waiting": _not_waiting,
}
