"""Every statement looks rows up by an index, also where a tenant's tables are new: a prepared plan stays."""

from typing import Any

import psycopg
import pytest

from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef
from tenants.statement import Statement
from tests.factories import make_placed
from tests.product_statements import PARTS, all_statements, checkpoints

Server = psycopg.Connection[tuple[Any, ...]]
# They look for nothing: rows are only added, or a sequence and a lock are asked.
WITHOUT_A_LOOK = {"submit", "admission_lock", "admission_dirty"}
SEQUENCE = "placement_dirty"


@pytest.fixture
def server(acme: TenantRef, globex: TenantRef, boot: WorkerBoot, superuser: Server) -> Server:
    """Connected as ours are, to a tenant whose tables are almost empty."""
    make_placed(acme, boot)
    superuser.execute("SET enable_seqscan = off")  # as every connection of ours has it
    superuser.execute(f"SET search_path = {acme.schema}, public")
    return superuser


def planned(server: Server, statement: Statement[Any]) -> list[str]:
    plan = server.execute(f"EXPLAIN (GENERIC_PLAN) {statement.text}".encode()).fetchall()
    return [line for (line,) in plan]


@pytest.mark.parametrize("name", sorted(all_statements()))
def test_no_table_is_read_through(server: Server, name: str) -> None:
    lines = planned(server, all_statements()[name])
    assert any("Index" in line for line in lines) is (name not in WITHOUT_A_LOOK)
    assert [line for line in lines if "Seq Scan" in line and SEQUENCE not in line] == []


def test_nor_by_any_variant_of_the_checkpoint(server: Server) -> None:
    variants = list(checkpoints())
    assert len({statement.text for statement in variants}) == 2 ** len(PARTS)
    for statement in variants:
        lines = planned(server, statement)
        assert any("Index" in line for line in lines)
        assert [line for line in lines if "Seq Scan" in line] == [], statement.text


def test_our_connections_plan_once_and_by_index(acme: TenantRef) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('enable_seqscan'), current_setting('plan_cache_mode')"
        )
        assert cursor.fetchone() == ("off", "force_generic_plan")
