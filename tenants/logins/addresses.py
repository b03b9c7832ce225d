"""The address under which the failures of a request are counted."""

from functools import cache

from django.conf import settings
from django.http import HttpRequest

from foundation.client_address import Network, client_address, counted_as, networks_of


def address_of(request: HttpRequest) -> str:
    """Return the caller's address, or the /64 network of an IPv6 address."""
    peer: str = request.META.get("REMOTE_ADDR", "")
    return counted_address(peer, request.headers.get("X-Forwarded-For", ""))


def counted_address(peer: str, forwarded: str) -> str:
    """Return the address from the parts of a request."""
    return counted_as(client_address(peer, forwarded, _networks(settings.TRUSTED_PROXIES)))


def is_shared_by_all() -> bool:
    """Return True if all callers have the address of a proxy because no proxy is trusted to report theirs."""
    return settings.BEHIND_TLS and not settings.TRUSTED_PROXIES


@cache
def _networks(words: tuple[str, ...]) -> tuple[Network, ...]:
    return networks_of(words)
