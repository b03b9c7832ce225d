"""Who is counted for a request: the address of its caller, also behind proxies that the operator trusts. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

LOOPBACK = "127.0.0.1"
MAX_HOPS = 20  # entries of X-Forwarded-For that are looked at, from the right
IPV6_PREFIX = 64  # whoever has one address of such a network has all of them
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def client_address(peer: str, forwarded: str, trusted: Iterable[Network]) -> str:
    """The peer; if that is a trusted proxy, the right-most address of X-Forwarded-For that is none.

    A peer without an address is at the other end of a Unix socket, so it counts as loopback.
    """
    networks = tuple(trusted)
    found = _parse(peer) or ip_address(LOOPBACK)
    for entry in reversed(forwarded.split(",")[-MAX_HOPS:]):
        if not _is_in(found, networks):
            break
        before = _parse(entry)
        if before is None:  # nobody knows what lies before it
            break
        found = before
    return str(found)


def counted_as(address: str) -> str:
    """What failures are counted under: an IPv4 address as it is, an IPv6 address by its /64 network."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(ip_network((parsed, IPV6_PREFIX), strict=False))


def networks_of(words: Iterable[str]) -> tuple[Network, ...]:
    """Networks from their texts."""
    return tuple(ip_network(word) for word in words)


def _parse(text: str) -> Address | None:
    """An address, also with a port behind it, as some proxies write it; an IPv4 address in IPv6 form is the former."""
    word = text.strip().split("%")[0]  # without the zone of a link-local one
    if word.startswith("["):
        word = word[1:].partition("]")[0]
    elif word.count(":") == 1:
        word = word.partition(":")[0]
    try:
        parsed = ip_address(word)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
