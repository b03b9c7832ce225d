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
from resources.gate.brokers.share import Share

BROKERED = "brokered"


def broker_of(grant: Grant, share: Share) -> Broker | None:
    """Return the broker that logs in for this grant; none if its secrets are for the run, or it has none.

    `share`: of the run.
    """
    make = _BROKERS.get(grant.type)
    if make is None or grant.config.get("credentials", BROKERED) != BROKERED:
        return None
    return make(grant, share)


def _http(grant: Grant, share: Share) -> Broker | None:
    login = http_login(grant)
    return (
        HttpBroker(login, share) if login.header else None
    )  # without one, TLS may be the run's own


_BROKERS: Mapping[str, Callable[[Grant, Share], Broker | None]] = MappingProxyType(
    {
        "http_api": _http,
        "model": _http,
        "database": lambda grant, share: PostgresBroker(postgres_login(grant), share),
        "cache": lambda grant, share: RedisBroker(redis_login(grant), share),
    }
)
