"""The server that a Redis URL names, in one form for all spellings. Pure."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

DEFAULT_PORT = 6379


def server_of(url: str) -> tuple[str, int] | None:
    """Return host and port; None for a Unix socket, which no TCP address equals, and for an invalid URL."""
    try:
        parts = urlsplit(url)
        return None if parts.scheme in {"unix", "redis+socket"} else host_and_port(parts)
    except ValueError:
        return None


def host_and_port(parts: SplitResult) -> tuple[str, int]:
    """Return host and port of a parsed URL; raise ValueError if its port is invalid."""
    return _host(parts.hostname or ""), DEFAULT_PORT if parts.port is None else parts.port


def _host(name: str) -> str:
    """Return one form for all names of this machine, and for all spellings of an address."""
    name = name.rstrip(".").lower()
    try:
        address = ip_address(name)
    except ValueError:
        return name or "localhost"
    address = getattr(address, "ipv4_mapped", None) or address
    return "localhost" if address.is_loopback or address.is_unspecified else str(address)
