"""The tests' own guard: a forbidden change of state is refused to everybody, and nothing else is."""

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest

from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    TICKET_TRANSITIONS,
    ExecutionState,
    StepState,
    TicketState,
)
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef
from tests.factories import make_placed, make_tenant
from tests.transition_guard import was_refused

Server = psycopg.Connection[tuple[object, ...]]
ENDED = ", ".join(f"'{state}'" for state in TERMINAL_EXECUTION)
RUN = f"""
UPDATE acme.executions_execution
SET state = %(state)s::text, finished_at = CASE WHEN %(state)s::text IN ({ENDED}) THEN now() END"""
STEP = "UPDATE acme.executions_step SET state = %(state)s::text"
TICKET = """
UPDATE public.placement_ticket
SET state = %(state)s::text,
    worker_id = CASE %(state)s::text WHEN 'placed' THEN (SELECT boot FROM placement_worker) END"""


@pytest.fixture
def server(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, superuser: Server
) -> Iterator[Server]:
    """Beside a placed run; what the guard remembers of the test is forgotten."""
    make_placed(acme, boot)
    yield superuser
    was_refused(superuser)


def bring_into(server: Server, statement: str, state: str) -> None:
    server.execute("SET session_replication_role = replica")  # without triggers
    server.execute(statement, {"state": state})
    server.execute("RESET session_replication_role")


def is_allowed(server: Server, statement: str, source: str, target: str) -> bool:
    """Return True if the guard lets it pass; a refusal names both states and is remembered."""
    bring_into(server, statement, source)
    refusal = ""
    try:
        server.execute(statement, {"state": target})
    except psycopg.errors.RaiseException as error:
        refusal = str(error)
    assert bool(refusal) is (f": {source} -> {target}" in refusal) is was_refused(server)
    return not refusal


def test_runs(server: Server) -> None:
    for source, target in product(ExecutionState, repeat=2):
        allowed = source is target or target in EXECUTION_TRANSITIONS[source]
        assert is_allowed(server, RUN, source, target) is allowed, (source, target)


def test_steps(server: Server) -> None:
    for source, target in product(StepState, repeat=2):
        allowed = source is target or target in STEP_TRANSITIONS[source]
        assert is_allowed(server, STEP, source, target) is allowed, (source, target)


def test_tickets(server: Server) -> None:
    for source, target in product(TicketState, repeat=2):
        allowed = source is target or target in TICKET_TRANSITIONS[source]
        assert is_allowed(server, TICKET, source, target) is allowed, (source, target)


def test_a_new_tenants_tables_are_guarded_too(server: Server) -> None:
    make_tenant("fresh")
    found = server.execute(
        "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'tests_guard' ORDER BY 1"
    ).fetchall()
    assert [name for (name,) in found] == [
        f"{schema}.executions_{table}"
        for schema in ("_template", "acme", "fresh", "globex")
        for table in ("execution", "step")
    ] + ["placement_ticket"]
