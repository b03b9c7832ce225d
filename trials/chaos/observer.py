"""The observer: tables with unique keys in a PostgreSQL outside of the platform, without faults.

Timing: created once before the trial, read once after it.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble; without the observer a trial proves nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef
from tests.customer import Customer
from trials.chaos import plan
from trials.chaos.rows import Effect, Observation, Observations, Violation
from trials.sandboxes import runtime_number

ACTOR = "chaos"
TABLES = """
    CREATE TABLE start (
        execution uuid, step text, epoch integer, attempt integer, role text, pid integer, namespace bigint,
        at timestamptz DEFAULT clock_timestamp(), UNIQUE (execution, step, epoch, attempt)
    );
    CREATE TABLE done (
        execution uuid, step text, epoch integer, attempt integer, role text,
        at timestamptz DEFAULT clock_timestamp()
    );
    CREATE TABLE effect (key text PRIMARY KEY, execution uuid, step text, epoch integer, attempt integer);
    CREATE TABLE once (execution uuid, step text, PRIMARY KEY (execution, step));
    CREATE TABLE violation (
        execution uuid, step text, epoch integer, attempt integer, what text,
        at timestamptz DEFAULT clock_timestamp()
    );
"""


class Observer:
    """A database in which only steps record what they do."""

    def __init__(self, customer: Customer) -> None:
        self._customer = customer

    def prepare(self, tenants: Sequence[TenantRef]) -> None:
        """Create the tables, and define the resource by which steps reach them."""
        customer = self._customer
        with customer.connect(customer.admin) as connection:
            connection.execute(TABLES)
        place = {"host": customer.host, "port": customer.port, "dbname": customer.dbname}
        definition = DefinitionInput(
            name=plan.OBSERVER,
            type="database",
            config={**place, "user": customer.admin.user},
            secrets={"password": plan.OBSERVER},
            scope="execution",
        )
        for tenant in tenants:
            put_secret(tenant, plan.OBSERVER, customer.admin.password, actor=ACTOR)
            create_definition(tenant, definition, actor=ACTOR)

    def observations(self) -> Observations:
        """Return all that was recorded."""
        return Observations(
            starts=[_observation(row) for row in self._rows("start")],
            dones=[_observation(row) for row in self._rows("done")],
            effects=[
                Effect(execution=UUID(str(row["execution"])), step=row["step"], key=row["key"])
                for row in self._rows("effect")
            ],
            violations=[
                Violation(
                    execution=row["execution"],
                    step=row["step"],
                    epoch=row["epoch"],
                    attempt=row["attempt"],
                    what=row["what"],
                )
                for row in self._rows("violation")
            ],
        )

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        with self._customer.connect(self._customer.admin) as connection:
            yield from connection.execute(f"TABLE {table}").fetchall()


def _observation(row: dict[str, Any]) -> Observation:
    return Observation(
        execution=row["execution"],
        step=row["step"],
        epoch=row["epoch"],
        attempt=row["attempt"],
        role=row["role"],
        pid=runtime_number(row.get("pid", 0), row.get("namespace", 0)),
        at=row["at"],
    )
