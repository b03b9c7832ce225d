"""The observer: tables with unique keys in a PostgreSQL outside of the platform, without faults.

Timing: created once before the trial, read once after it.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble; without the observer a trial proves nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.conninfo import make_conninfo

from tests.customer import Customer
from trials.chaos.rows import Effect, Observation, Observations, Violation
from trials.sandboxes import runtime_number

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

    def __init__(self, customer: Customer, sockets: Path) -> None:
        self._customer = customer
        self._sockets = sockets

    def dsn(self, *, trusted: bool) -> str:
        """Return the connection string for steps; in a sandbox there is no network, but the socket's folder."""
        customer = self._customer
        return make_conninfo(
            host=customer.host if trusted else str(self._sockets),
            port=customer.port,
            user=customer.admin.user,
            password=customer.admin.password,
            dbname=customer.dbname,
        )

    def prepare(self) -> None:
        """Create the tables."""
        with self._customer.connect(self._customer.admin) as connection:
            connection.execute(TABLES)

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
