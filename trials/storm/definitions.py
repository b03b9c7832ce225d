"""Resource definitions of the storm trial."""

from typing import Any

from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef
from tests.customer import Customer
from tests.recorder import Recorder

ACTOR = "storm"
ROLE = "reporting"
TOKEN = "storm/token+of=the&web"  # noqa: S105 - opens nothing


def define(
    tenant: TenantRef, customer: Customer, recorder: Recorder, *, credentials: str = "brokered"
) -> None:
    """Define a database with a fixed login and with minted roles, the run cache, and an HTTP service."""
    put_secret(tenant, "reader", customer.reader.password, actor=ACTOR)
    put_secret(tenant, "admin", customer.admin.password, actor=ACTOR)
    put_secret(tenant, "token", TOKEN, actor=ACTOR)
    told = {"credentials": credentials}
    address = {"host": customer.host, "port": customer.port, "dbname": customer.dbname, **told}
    minted = {**address, "user": customer.admin.user, "mint": {"roles": [ROLE]}}
    web = {"base_url": recorder.url, "auth": "bearer", **told}
    for wanted in (
        _wanted(
            "shop", "database", {**address, "user": customer.reader.user}, {"password": "reader"}
        ),
        _wanted("own", "database", minted, {"password": "admin"}),
        _wanted("scratch", "cache", told, {}),
        _wanted("web", "http_api", web, {"token": "token"}),
    ):
        create_definition(tenant, wanted, actor=ACTOR)


def _wanted(
    name: str, type_: str, config: dict[str, Any], secrets: dict[str, str]
) -> DefinitionInput:
    """Return a definition of the wider scope; blueprints may narrow it."""
    return DefinitionInput(name=name, type=type_, config=config, secrets=secrets, scope="execution")
