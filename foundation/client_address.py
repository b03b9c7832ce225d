"""The address of a request's caller, also behind proxies that the operator trusts. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

LOOPBACK = "127.0.0.1"
MAX_HOPS = 20  # entries of X-Forwarded-For that are looked at, from the right
IPV6_PREFIX = 64  # the owner of one address in such a network has all of them
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def client_address(peer: str, forwarded: str, trusted: Iterable[Network]) -> str:
    """Return the peer's address; behind trusted proxies, the right-most address of X-Forwarded-For that is not one.

    A peer without an address uses a Unix socket, so it counts as loopback.
    """
    networks = tuple(trusted)
    found = _parse(peer) or ip_address(LOOPBACK)
    for entry in reversed(forwarded.split(",")[-MAX_HOPS:]):
        if not _is_in(found, networks):
            break
        before = _parse(entry)
        if before is None:  # nothing before it can be trusted
            break
        found = before
    return str(found)


def counted_as(address: str) -> str:
    """Return the name that failures are counted under: an IPv4 address, or the /64 network of an IPv6 address."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(ip_network((parsed, IPV6_PREFIX), strict=False))


def networks_of(words: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks."""
    return tuple(ip_network(word) for word in words)


def _parse(text: str) -> Address | None:
    """Parse an address, also with a port, as some proxies write it; unmap IPv4 in IPv6 form."""
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
