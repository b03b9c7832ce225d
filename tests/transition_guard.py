"""In the tests' database PostgreSQL itself refuses every change of state that `executions.states` does not allow.

So each test that runs a statement is also a test of its transition. The product's database has none of this.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from executions.states import EXECUTION_TRANSITIONS, STEP_TRANSITIONS, TICKET_TRANSITIONS

Server = psycopg.Connection[Any]
TABLES: Mapping[str, Mapping[Any, frozenset[Any]]] = {
    "executions_execution": EXECUTION_TRANSITIONS,
    "executions_step": STEP_TRANSITIONS,
    "placement_ticket": TICKET_TRANSITIONS,
}
# A sequence is not rolled back: it remembers what was refused, though an error was swallowed.
FUNCTION = """
CREATE SCHEMA tests_guard;
GRANT USAGE ON SCHEMA tests_guard TO PUBLIC;
CREATE SEQUENCE tests_guard.refused;
CREATE FUNCTION tests_guard.refuse_transition() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF OLD.state <> NEW.state AND NOT OLD.state || ' -> ' || NEW.state = ANY(TG_ARGV) THEN
        PERFORM nextval('tests_guard.refused');
        RAISE EXCEPTION 'forbidden transition of %: % -> %', TG_TABLE_NAME, OLD.state, NEW.state;
    END IF;
    RETURN NEW;
END $$"""


def install(server: Server) -> None:
    """Guard the shared tickets and the template, from which every tenant's tables are cloned."""
    server.execute(FUNCTION)
    guard(server, "public", "placement_ticket")
    guard_tenant(server, "_template")


def guard_tenant(server: Server, schema: str) -> None:
    """Guard the tables of one tenant that was not cloned."""
    guard(server, schema, "executions_execution")
    guard(server, schema, "executions_step")


def guard(server: Server, schema: str, table: str) -> None:
    """Refuse what the table of transitions does not allow; a state may stay as it is."""
    allowed = ", ".join(
        f"'{source.value} -> {target.value}'"
        for source, targets in TABLES[table].items()
        for target in sorted(targets)
    )
    server.execute(
        f'CREATE TRIGGER tests_guard BEFORE UPDATE OF state ON "{schema}".{table} FOR EACH ROW '
        f"EXECUTE FUNCTION tests_guard.refuse_transition({allowed})"
    )


@contextmanager
def unguarded(server: Server, schema: str) -> Iterator[None]:
    """Let a tenant's runs and steps become what they like, for as long as the block lasts."""
    tables = [f'"{schema}".executions_{name}' for name in ("execution", "step")]
    for table in tables:
        server.execute(f"ALTER TABLE {table} DISABLE TRIGGER tests_guard")
    try:
        yield
    finally:
        for table in tables:
            server.execute(f"ALTER TABLE {table} ENABLE TRIGGER tests_guard")


def was_refused(server: Server) -> bool:
    """Return True if anything was refused since the last call."""
    row = server.execute("SELECT is_called FROM tests_guard.refused").fetchone()
    server.execute("SELECT setval('tests_guard.refused', 1, false)")
    return bool(row and row[0])
