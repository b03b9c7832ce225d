"""The addresses that a definition may point at.

Every refusal is the same sentence; operators find the reason in the log.

Timing: when a definition is saved (without DNS) and when a placement opens (its host is resolved).
Model: sync; `refusal`, `host_and_port` and `check_literal` decide, `resolve` asks DNS once.
Guarantee: fails closed; every address of a name must be allowed, and the checked one is connected to.
Failure: AddressRefused names the host, never its address or the reason; HostUnknown may pass.
"""

import logging
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import psutil
from django.conf import settings

from foundation.errors import InvalidInput, Unavailable
from resources.platform_addresses import WEB_PORT, is_web, platform_addresses

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

ANY_PORT = 0  # of a type whose config names no port
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?\.?|[0-9A-Fa-f:.]{2,45}")
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f\\]")
_DATABASE_PORT = 5432
_URL_PORTS = {"http": 80, "https": 443}
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64
# Not public either, in whatever version of Python's ipaddress: special blocks, and Azure's metadata.
_SPECIAL = tuple(
    map(ip_network, ("192.0.0.0/24", "100.64.0.0/10", "64:ff9b:1::/48", "168.63.129.16/32"))
)
_OWN = "it is the platform's own"
_WAY_OUT = (
    "it must be a server of yours, at a public address or in a network that the operator has opened by "
    "ISOLANE_RESOURCE_NETWORKS"
)
logger = logging.getLogger(__name__)
_FRESH_SECONDS = 30  # names of the platform's servers may get other addresses


class AddressRefused(InvalidInput):
    """A definition points at an address that is not allowed."""

    code = "address_refused"
    reason = ""  # for operators


class HostUnknown(Unavailable):
    """A definition's host has no address now."""

    code = "host_unknown"


@dataclass(frozen=True, kw_only=True)
class AddressPolicy:
    """The networks that the operator allows, and the platform's own servers, which nobody can allow."""

    networks: tuple[IpNetwork, ...] = ()
    own: frozenset[tuple[str, int]] = frozenset()  # address and port
    own_names: frozenset[tuple[str, int]] = frozenset()  # the same, as configured
    own_domain: str = ""  # web's host name, the parent domain of the tenants' hosts
    machine: frozenset[str] = frozenset()  # this machine's addresses, beside loopback

    def is_own_name(self, name: str, port: int) -> bool:
        """Say whether a server of the platform has this name."""
        if any(name == own and port in {own_port, ANY_PORT} for own, own_port in self.own_names):
            return True
        return is_web(name, port or WEB_PORT, self.own_domain)

    def is_local(self, address: IpAddress) -> bool:
        """Say whether a connection to it ends on this machine."""
        return address.is_loopback or address.is_unspecified or str(address) in self.machine

    def is_own(self, address: IpAddress, port: int) -> bool:
        """Say whether it is a server of the platform; a local server answers at every local address."""
        for text, own_port in self.own:
            if port not in {own_port, ANY_PORT}:
                continue
            own = ip_address(text)
            if own == address or (self.is_local(own) and self.is_local(address)):
                return True
        return False

    def allows(self, address: IpAddress) -> bool:
        """Say whether the operator opened a network that contains it."""
        return any(address in network for network in self.networks)


def refusal(address: str, port: int, policy: AddressPolicy) -> str:
    """Return why this address is not allowed, for operators; empty if it is."""
    try:
        forms = list(_forms(ip_address(address.partition("%")[0])))
    except ValueError:
        return "it is not an IP address"
    if any(policy.is_own(form, port) for form in forms):
        return _OWN
    meant = forms[-1]
    kind = _kind(meant) or ("an address of this machine" if policy.is_local(meant) else "")
    if not kind or policy.allows(meant):
        return ""
    return f"it is {kind}, in no network of ISOLANE_RESOURCE_NETWORKS"


def host_and_port(resource_type: str, config: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the host and port of a resource of this type; None if its config names none."""
    if resource_type == "cache" or (resource_type == "model" and config.get("provider") == "echo"):
        return None
    if resource_type in {"http_api", "model"}:
        return _of_url(config.get("base_url", ""))
    if resource_type == "database":
        return _host("host", config.get("host", "")), _port(config.get("port", _DATABASE_PORT))
    if "host" not in config:
        return None
    return _host("host", config["host"]), _port(config.get("port", ANY_PORT), least=ANY_PORT)


def check_literal(resource_type: str, config: Mapping[str, Any], policy: AddressPolicy) -> None:
    """Refuse what is recognised without DNS: addresses in any notation, localhost, the platform's own host names."""
    place = host_and_port(resource_type, config)
    if place is None:
        return
    host, port = place
    name = host.lower().rstrip(".")
    is_loopback = name == "localhost" or name.endswith(".localhost")
    found = ["127.0.0.1"] if is_loopback else _lookup(host, port, socket.AI_NUMERICHOST)
    _check(host, port, found, policy)


def resolve(host: str, port: int, policy: AddressPolicy) -> str:
    """Return the address to connect to; refuse a name if any of its addresses is not allowed."""
    found = _lookup(host, port)
    _check(host, port, found, policy)
    if not found:
        raise HostUnknown(f"host {host!r} has no address; check its name.", field="host")
    return found[0]


def check_address(host: str, port: int, address: str, policy: AddressPolicy) -> None:
    """Refuse an address that was found for this host before, if it is not allowed any more; nothing is logged."""
    if refused := _refused(host, port, [address], policy):
        raise refused


def policy_from_settings() -> AddressPolicy:
    """Return the policy of this process; asks DNS for the platform's own names, at most every half minute."""
    places = platform_addresses(
        settings.DATABASES.values(),
        (settings.REDIS_URL, settings.CACHE_URL),
        settings.OWN_ADDRESSES,
    )
    own, machine = _seen(places, int(time.monotonic() / _FRESH_SECONDS))
    return AddressPolicy(
        networks=_networks(tuple(settings.RESOURCE_NETWORKS)),
        own=own,
        own_names=places,
        own_domain=settings.OWN_DOMAIN.lower(),
        machine=machine,
    )


@lru_cache(maxsize=2)
def _networks(texts: tuple[str, ...]) -> tuple[IpNetwork, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


@lru_cache(maxsize=2)
def _seen(
    places: frozenset[tuple[str, int]], _age: int
) -> tuple[frozenset[tuple[str, int]], frozenset[str]]:
    own = set()
    for host, port in places:
        found = _lookup(host, port)
        if not found:  # it is not named: the caller may be a tenant
            raise HostUnknown("a server of the platform has no address now; try again later.")
        own |= {(address.partition("%")[0], port) for address in found}
    interfaces = psutil.net_if_addrs().values()
    families = (socket.AF_INET, socket.AF_INET6)
    machine = {
        one.address.partition("%")[0]
        for all_ in interfaces
        for one in all_
        if one.family in families
    }
    return frozenset(own), frozenset(machine)


def _check(host: str, port: int, found: list[str], policy: AddressPolicy) -> None:
    if refused := _refused(host, port, found, policy):
        place = f"{host}:{port}" if port else host
        extra = {"event": "ADDRESS_REFUSED"}
        logger.info("host %r refused: %s", place, refused.reason, extra=extra)
        raise refused


def _refused(
    host: str, port: int, found: list[str], policy: AddressPolicy
) -> AddressRefused | None:
    name = host.lower().rstrip(".")
    reasons = (refusal(address, port, policy) for address in found)
    reason = _OWN if policy.is_own_name(name, port) else next(filter(None, reasons), "")
    if not reason:
        return None
    place = f"{host}:{port}" if port else host
    refused = AddressRefused(
        f"host {place!r} is not allowed for a resource: {_WAY_OUT}.", field="host"
    )
    refused.reason = reason
    return refused


def _forms(address: IpAddress) -> Iterator[IpAddress]:
    """Yield the address, and the IPv4 address that it embeds, where a connection would end."""
    yield address
    if not isinstance(address, IPv6Address):
        return
    if inner := address.ipv4_mapped or address.sixtofour:
        yield inner
    elif address in _TRANSLATED:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def _kind(address: IpAddress) -> str:
    """Return what kind of address it is; empty for an ordinary public one."""
    kinds = {
        "a loopback address": address.is_loopback,
        "the unspecified address": address.is_unspecified,
        "a multicast address": address.is_multicast,
        "a link-local address": address.is_link_local,
        "a private or reserved address": not address.is_global
        or address.is_reserved
        or any(address in network for network in _SPECIAL)
        or (isinstance(address, IPv6Address) and address.is_site_local),
    }
    return next((kind for kind, holds in kinds.items() if holds), "")


def _of_url(url: object) -> tuple[str, int]:
    if not isinstance(url, str) or _UNFIT.search(url):
        raise _unfit("base_url", url, "use a URL without blanks, such as https://api.example.com")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _unfit("base_url", url, "use a URL such as https://api.example.com/v1") from None
    if "@" in parts.netloc:  # the value is not shown: it may contain a password
        raise AddressRefused(
            "base_url contains credentials; put them into a secret.", field="base_url"
        )
    if parts.scheme not in _URL_PORTS:
        raise _unfit("base_url", url, "use a URL that begins with https:// or http://")
    host = _host("base_url", parts.hostname or "")
    return host, _port(_URL_PORTS[parts.scheme] if port is None else port)


def _host(field: str, host: object) -> str:
    """Return one name or address: no socket path, no list of hosts as libpq would take."""
    if not isinstance(host, str) or not _HOST.fullmatch(host) or not _is_one(host):
        raise _unfit(field, host, "use one host name or IP address, such as db.example.com")
    return host


def _is_one(host: str) -> bool:
    """Accept a colon only in an IPv6 address: a port has a field of its own."""
    try:
        return ":" not in host or bool(IPv6Address(host))
    except ValueError:
        return False


def _port(port: object, least: int = 1) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not least <= port <= 65535:
        raise _unfit("port", port, "use a number from 1 to 65535")
    return port


def _lookup(host: str, port: int, flags: int = 0) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _unfit(field: str, value: object, way_out: str) -> AddressRefused:
    return AddressRefused(f"{field} {str(value)[:200]!r} is not usable: {way_out}.", field=field)
