"""The plan of a run's gate: where its routes lead, and the grants as its runtime gets them.

A definition has an address of its own in the sandbox, at which its handles connect. Its host's name has another one, at
which programs find all definitions of that host, by their ports.

Timing: once per placement.
Model: sync, no I/O.
Guarantee: a grant that is brokered has no secret.
Failure: bubble.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, NamedTuple

from isolane.gate.routes import Listener, LoopbackPair, RouteTable
from isolane.protocol import Grant
from isolane.sandbox.loopback import LOOPBACK_V6
from resources.addresses import ANY_PORT, host_and_port
from resources.gate.brokers.base import Broker
from resources.gate.brokers.registry import broker_of
from resources.gate.brokers.share import Share

CACHE = "cache"
# The run cache as a run sees it where the worker logs in: where it really is, is the platform's own affair.
_CACHE_NAME, _CACHE_PORT = "run-cache", 6379
_LOCALHOST = "localhost"
_PER_NET = 250  # addresses used of each 127.n.m.0/24
_OF_DEFINITIONS, _OF_NAMES = 77, 78  # 127.77.0.0/16, 127.78.0.0/16


@dataclass(frozen=True, kw_only=True)
class Route:
    """The remote server of one definition."""

    definition: str
    host: str  # and port: as the run knows them
    port: int
    address: str  # checked when the placement opened, and again at every connection
    server_port: int
    broker: Broker | None  # none: bytes are carried as they are
    is_platforms: bool  # the run cache, which is the platform's own and granted to this run


class GatePlan(NamedTuple):
    """All that a gate needs."""

    routes: tuple[Route, ...]
    table: RouteTable
    grants: tuple[Grant, ...]  # for the runtime


def plan_gate(grants: Sequence[Grant], share: Share) -> GatePlan:
    """Plan the gate for the grants of a placement; those of one definition have one route.

    `share`: of the run, for its brokers.
    """
    routes: list[Route] = []
    numbers: dict[str, int] = {}  # of the routes, by definition
    inside: list[Grant] = []
    for grant in grants:
        if grant.definition not in numbers and (route := _route_of(grant, share)) is not None:
            numbers[grant.definition] = len(routes)
            routes.append(route)
        number = numbers.get(grant.definition)
        inside.append(grant if number is None else _granted(grant, routes[number], number))
    return GatePlan(tuple(routes), _table(routes), tuple(inside))


def _route_of(grant: Grant, share: Share) -> Route | None:
    """Return where a grant leads; nowhere if it needs no connection."""
    place = _place_of(grant.type, grant.config)
    if place is None or place[1] == ANY_PORT or not grant.address:
        return None
    broker = broker_of(grant, share)
    is_hidden = grant.type == CACHE and broker is not None
    host, port = (_CACHE_NAME, _CACHE_PORT) if is_hidden else place
    return Route(
        definition=grant.definition,
        host=host.lower().rstrip("."),
        port=port,
        address=grant.address,
        server_port=place[1],
        broker=broker,
        is_platforms=grant.type == CACHE,
    )


def _place_of(kind: str, config: Mapping[str, Any]) -> tuple[str, int] | None:
    if kind == CACHE:  # the platform's own, which its issuer has named
        return config["host"], config["port"]
    return host_and_port(kind, config)


def _granted(grant: Grant, route: Route, number: int) -> Grant:
    """Return the grant for the runtime, which connects at the definition's own address."""
    address = _pair(_OF_DEFINITIONS, number).v4
    if route.broker is None:
        return replace(grant, address=address)
    config = grant.config
    if route.is_platforms:
        config = {**config, "host": route.host, "port": route.port}
    return replace(grant, address=address, config=config, secrets={}, brokered=True)


def _table(routes: Sequence[Route]) -> RouteTable:
    listeners = [
        Listener(number, _pair(_OF_DEFINITIONS, number), route.port)
        for number, route in enumerate(routes)
    ]
    hosts = dict.fromkeys(route.host for route in routes if not _is_address(route.host))
    names = {host: _pair(_OF_NAMES, number) for number, host in enumerate(hosts)}
    if _LOCALHOST in names:  # a file of the sandbox has it, and is asked first
        names[_LOCALHOST] = LoopbackPair("127.0.0.1", "::1")
    taken = set()
    # Of definitions of one host and port the first by name: the order of declarations is not kept.
    for number, route in sorted(enumerate(routes), key=lambda one: one[1].definition):
        place = (route.host, route.port)
        if route.host in names and place not in taken:
            taken.add(place)
            listeners.append(Listener(number, names[route.host], route.port))
    return RouteTable(listeners=tuple(listeners), names=names)


def _pair(net: int, number: int) -> LoopbackPair:
    third, fourth = divmod(number, _PER_NET)
    return LoopbackPair(
        f"127.{net}.{third}.{fourth + 1}", str(LOOPBACK_V6[(net << 16) + number + 1])
    )


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
