"""The hot statements look rows up by an index, also where a tenant's tables are new: a prepared plan stays."""

import re
from typing import Any

import psycopg
import pytest

from executions.transitions import answer, append_output, checkpoint, claim, close, ledger
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef
from tests.factories import make_placed

STATEMENTS = {
    "claim": claim.CLAIM,
    "reason": claim.REASON,
    "checkpoint": checkpoint._statement(
        logs=True, costs=True, variables=True, outputs=True, asks=True, claims=True, held=True
    ),
    "written": checkpoint.WRITTEN,
    "close": close.SETTLING[close.CLOSE],
    "hand back": close.SETTLING[close.HAND_BACK],
    "restart": close.SETTLING[close.RESTART],
    "issue": ledger.ISSUE,
    "swept": ledger.SWEPT,
    "journal": append_output.APPEND_OUTPUT,
    "answer": answer.ANSWER,
}


def numbered(statement: str) -> str:
    """With PostgreSQL's own placeholders."""
    names: list[str] = []

    def number(found: "re.Match[str]") -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, statement)


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_table_is_read_through(
    acme: TenantRef,
    globex: TenantRef,
    machine: WorkerBoot,
    superuser: "psycopg.Connection[tuple[Any, ...]]",
    name: str,
) -> None:
    make_placed(acme, machine)
    superuser.execute("SET enable_seqscan = off")  # as every connection of ours has it
    superuser.execute(f"SET search_path = {acme.schema}, public")
    plan = superuser.execute(f"EXPLAIN (GENERIC_PLAN) {numbered(STATEMENTS[name])}").fetchall()
    lines = [line for (line,) in plan]
    assert any("Index" in line for line in lines)
    assert [line for line in lines if "Seq Scan" in line] == []


def test_our_connections_plan_once_and_by_index(acme: TenantRef) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('enable_seqscan'), current_setting('plan_cache_mode')"
        )
        assert cursor.fetchone() == ("off", "force_generic_plan")
