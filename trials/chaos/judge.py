"""The judge: tables with unique keys in a PostgreSQL that is not the platform's and is not restarted.

Timing: made once before, read once after. Model: sync. Guarantee: idempotent; it only looks.
Failure: bubble; without its judge a chaos proves nothing.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from psycopg.conninfo import make_conninfo

from tests.customer import Customer
from trials.chaos.rows import Effect, Heard, Told, Violation

TABLES = """
    CREATE TABLE start (
        execution uuid, step text, epoch integer, attempt integer, role text, pid integer,
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


class Judge:
    """Steps tell it what they do; nobody else does."""

    def __init__(self, customer: Customer) -> None:
        self._customer = customer

    @property
    def dsn(self) -> str:
        """Where steps reach it."""
        customer = self._customer
        return make_conninfo(
            host=customer.host,
            port=customer.port,
            user=customer.admin.user,
            password=customer.admin.password,
            dbname=customer.dbname,
        )

    def prepare(self) -> None:
        """Make its tables."""
        with self._customer.connect(self._customer.admin) as connection:
            connection.execute(TABLES)

    def heard(self) -> Heard:
        """All that it has heard."""
        return Heard(
            starts=[_told(row) for row in self._rows("start")],
            dones=[_told(row) for row in self._rows("done")],
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


def _told(row: dict[str, Any]) -> Told:
    return Told(
        execution=row["execution"],
        step=row["step"],
        epoch=row["epoch"],
        attempt=row["attempt"],
        role=row["role"],
        pid=row.get("pid", 0),
        at=row["at"],
    )
