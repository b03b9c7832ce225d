"""The cost of a tenant: the same for each, however many there are, and far less than replaying migrations."""

import psycopg
from django.db import connections
from django.test.utils import CaptureQueriesContext

from tenants.provisioning import migrate_new_schema
from tests.factories import make_tenant

Server = psycopg.Connection[tuple[object, ...]]


def statements_to_create(schema: str) -> int:
    with CaptureQueriesContext(connections["owner"]) as captured:
        make_tenant(schema)
    return len(captured)


def test_each_tenant_costs_the_same_few_statements(database: None, superuser: Server) -> None:
    counts = {statements_to_create(f"tenant{number}") for number in range(5)}
    assert len(counts) == 1
    try:
        with CaptureQueriesContext(connections["owner"]) as captured:
            migrate_new_schema("replayed")
    finally:
        superuser.execute("DROP SCHEMA replayed CASCADE")
    assert counts.pop() * 2 < len(captured)
