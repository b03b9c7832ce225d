"""The brokers by type of resource. Pure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from isolane.protocol import Grant
from resources.gate.brokers.base import Broker
from resources.gate.brokers.http import HttpBroker
from resources.gate.brokers.http_login import http_login
from resources.gate.brokers.postgres import PostgresBroker
from resources.gate.brokers.postgres_login import postgres_login
from resources.gate.brokers.redis import RedisBroker, redis_login
from resources.gate.brokers.turn import Turn

BROKERED = "brokered"


def broker_of(grant: Grant, turn: Turn) -> Broker | None:
    """Return the broker that logs in for this grant; none if its secrets are for the run, or it has none.

    `turn`: of the run, for what its brokers leave to threads.
    """
    make = _BROKERS.get(grant.type)
    if make is None or grant.config.get("credentials", BROKERED) != BROKERED:
        return None
    return make(grant, turn)


def _http(grant: Grant, turn: Turn) -> Broker | None:
    login = http_login(grant)
    return (
        HttpBroker(login, turn) if login.header else None
    )  # without one, TLS may be the run's own


_BROKERS: Mapping[str, Callable[[Grant, Turn], Broker | None]] = MappingProxyType(
    {
        "http_api": _http,
        "model": _http,
        "database": lambda grant, turn: PostgresBroker(postgres_login(grant), turn),
        "cache": lambda grant, turn: RedisBroker(redis_login(grant), turn),
    }
)
