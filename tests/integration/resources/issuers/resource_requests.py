"""Asks as a placement would make them."""

from typing import Any
from uuid import UUID, uuid4

from resources.issuers.base import ResourceRequest
from tests.customer import Customer


def cache_request(
    *, execution_id: UUID | None = None, epoch: int = 1, definition: str = "notes"
) -> ResourceRequest:
    """For a cache."""
    return _request("cache", execution_id, epoch, definition, {"ttl_s": 60}, {}, "")


def database_request(
    customer: Customer,
    *,
    execution_id: UUID | None = None,
    epoch: int = 1,
    definition: str = "billing-db",
    roles: tuple[str, ...] = ("reporting",),
    **config: Any,
) -> ResourceRequest:
    """For a minted role on the customer's server."""
    whole = {
        "host": "db.customer.test",  # known to no DNS: only the address can lead there
        "port": customer.port,
        "dbname": customer.dbname,
        "user": customer.admin_user,
        "mint": {"roles": list(roles)},
        **config,
    }
    secrets = {"password": customer.admin_password}
    return _request("database", execution_id, epoch, definition, whole, secrets, customer.host)


def _request(
    resource_type: str,
    execution_id: UUID | None,
    epoch: int,
    definition: str,
    config: dict[str, Any],
    secrets: dict[str, str],
    address: str,
) -> ResourceRequest:
    return ResourceRequest(
        tenant="acme",
        execution_id=execution_id or uuid4(),
        epoch=epoch,
        name="handle",
        type=resource_type,
        definition=definition,
        scope="execution",
        eager=False,
        config=config,
        secrets=secrets,
        address=address,
        seconds_left=30.0,
    )
