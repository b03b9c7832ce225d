"""Named statements on a real connection: rows by name, prepared once per scope, and known to the server by name."""

from typing import NamedTuple

import psycopg
import pytest
from django.db import connection

from tenants.scope import TenantRef, login_scope, tenant_scope
from tenants.statement import Statement
from tests.integration.executions.statements import counted, is_named
from tests.integration.executions.threads import in_thread
from tests.waiting import wait_for

Server = psycopg.Connection[tuple[object, ...]]
OURS = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%isolane:sum_of%%'"
ASLEEP = "SELECT query FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
ENOUGH = 8  # times after which the driver has prepared it

pytestmark = pytest.mark.usefixtures("acme", "globex")


class SumRow(NamedTuple):
    """A sum, and where it was made."""

    total: int
    path: str


SUM = Statement(
    "sum_of",
    "SELECT %(a)s::int + %(b)s::int AS total, current_setting('search_path') AS path WHERE %(a)s::int > 0",
    parameters=("a", "b"),
    row=SumRow,
)


def test_a_row_has_names() -> None:
    row = SUM.fetch({"a": 1, "b": 2})
    assert row == SumRow(total=3, path="public")
    assert isinstance(row, SumRow)


def test_no_row_is_none() -> None:
    assert SUM.fetch({"a": 0, "b": 2}) is None


def test_all_rows() -> None:
    many = Statement(
        "many", "SELECT n FROM generate_series(1, %(last)s) AS n", parameters=("last",), row=OneRow
    )
    assert many.fetch_all({"last": 3}) == [OneRow(1), OneRow(2), OneRow(3)]
    assert many.fetch_all({"last": 0}) == []


class OneRow(NamedTuple):
    """A row of one column."""

    n: int


@pytest.mark.parametrize("ask", ["fetch", "fetch_all"])
@pytest.mark.parametrize(
    "text", ["SELECT 1 AS m", "SELECT 1 AS n, 2 AS m", "SELECT 1 AS m WHERE false"]
)
def test_fields_that_are_not_the_columns_are_refused_each_time(text: str, ask: str) -> None:
    wrong = Statement("wrong", text, row=OneRow)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"wrong: the fields of OneRow are \('n',\)"):
            getattr(wrong, ask)()


def test_parameters_that_it_has_no_use_for_are_left_out() -> None:
    """One set of parameters is for several statements that ask about the same thing."""
    assert SUM.fetch({"a": 1, "b": 2, "c": object()}) is not None


def test_a_parameter_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError, match="b"):
        SUM.fetch({"a": 1})


def test_each_scope_has_a_plan_of_its_own(acme: TenantRef, globex: TenantRef) -> None:
    """PostgreSQL would drop the plan with every change of scope."""
    for _ in range(ENOUGH):
        for tenant in (acme, globex):
            with tenant_scope(tenant):
                row = SUM.fetch({"a": 1, "b": 2})
            assert row is not None
            assert row.path == f"{tenant.schema}, public"
    with tenant_scope(acme), connection.cursor() as cursor:
        cursor.execute(OURS, [])
        assert cursor.fetchone() == (2,)


def test_the_server_knows_it_by_its_name(superuser: Server) -> None:
    with counted(superuser) as statements:
        SUM.fetch({"a": 1, "b": 2})
    (text,) = (text for text in statements if "AS total" in text)
    assert is_named(text, "sum_of")


def test_also_while_it_runs(superuser: Server) -> None:
    sleep = Statement(
        "long_sleep", "SELECT 1 AS n FROM pg_sleep(%(s)s)", parameters=("s",), row=OneRow
    )

    def wait() -> OneRow | None:
        with login_scope():
            return sleep.fetch({"s": 1})

    asleep = in_thread(wait)
    shown = wait_for(lambda: superuser.execute(ASLEEP).fetchone(), "the statement to be under way")
    assert is_named(str(shown), "long_sleep")
    assert asleep.result(timeout=20) == OneRow(1)
