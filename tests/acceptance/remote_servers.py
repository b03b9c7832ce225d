"""Traces of a run at the remote servers, the customer's PostgreSQL and the run cache; and in its ledger."""

from dataclasses import dataclass
from uuid import UUID

import redis

from executions.models import Execution
from executions.selectors.resource_records import Balance, balance
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef, tenant_scope
from tests.customer import Customer

RESOURCES = {
    "shop": {"type": "database", "definition": "shop-db", "scope": "execution"},
    "scratch": {"type": "cache", "definition": "scratch", "scope": "execution"},
}


def define(tenant: TenantRef, customer: Customer) -> None:
    """A minted database and a cache, as an administrator of the tenant defines them."""
    put_secret(tenant, "shop-admin", customer.admin_password, actor="test")
    config = {
        "host": customer.host,
        "port": customer.port,
        "dbname": customer.dbname,
        "user": customer.admin_user,
        "mint": {"roles": ["reporting"]},
    }
    for name, kind, said, secrets in (
        ("shop-db", "database", config, {"password": "shop-admin"}),
        ("scratch", "cache", {}, {}),
    ):
        wanted = DefinitionInput(
            name=name, type=kind, config=said, secrets=secrets, scope="execution"
        )
        create_definition(tenant, wanted, actor="test")


@dataclass(frozen=True)
class RemoteServers:
    """Both of them."""

    customer: Customer
    cache: "redis.Redis"

    def left_of(self, execution_id: UUID) -> list[str]:
        """Return all that exists there on behalf of a run."""
        text, digits = str(execution_id), execution_id.hex
        clients = [str(one["name"]) for one in self.cache.client_list() if text in one["name"]]
        users = [user for user in map(_text, self.cache.acl_users()) if text in user]
        keys = list(map(_text, self.cache.scan_iter(match=f"*{text}*")))
        sessions = [row["application_name"] for row in self.customer.activity(text)]
        return [*clients, *users, *keys, *sessions, *self.customer.roles(f"iso_{digits}")]


def balance_of(tenant: TenantRef, run: Execution) -> Balance:
    """A run's ledger in numbers."""
    with tenant_scope(tenant):
        return balance(run)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
