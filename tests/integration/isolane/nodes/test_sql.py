"""isolane.nodes.sql: statements of steps against a real PostgreSQL."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from isolane.node import default_registry
from isolane.results import Code, StepError
from isolane.testing import run_node
from tests.plugin import SERVERS

Connection = psycopg.Connection[dict[str, Any]]


def connect() -> Connection:
    """As the provider connects: every statement a transaction, rows as dicts."""
    return psycopg.connect(
        SERVERS.superuser_url, dbname="isolane", autocommit=True, row_factory=dict_row
    )


@pytest.fixture
def connection(servers: None) -> Iterator[Connection]:
    with connect() as connection:
        connection.execute(
            "CREATE TEMP TABLE invoice (id int PRIMARY KEY, total numeric, note text)"
        )
        connection.execute("INSERT INTO invoice VALUES (1, 10.50, 'a%b'), (2, 20.00, NULL)")
        yield connection


def query(connection: Connection, sql: str, parameters: Any = None, **more: Any) -> Any:
    run = run_node(
        "sql.query",
        resources={"billing": connection},
        resource="billing",
        sql=sql,
        parameters=parameters,
        **more,
    )
    return run.output


def test_the_node_says_what_it_is() -> None:
    node = default_registry.get("sql.query")
    assert node is not None
    assert (node.idempotent, node.deterministic, node.uses_key) == (False, False, False)
    properties = node.description().parameters["properties"]
    assert properties["resource"] == {"type": "string", "resource": "database"}


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT id, total FROM invoice WHERE id = %s", [2]),
        ("SELECT id, total FROM invoice WHERE id = %(id)s", {"id": 2}),
        ("SELECT id, total FROM invoice WHERE note IS NULL", []),
        ("SELECT id, total FROM invoice WHERE id = ANY(%s)", [[2, 3]]),
    ],
)
def test_rows_are_returned(connection: Connection, sql: str, parameters: Any) -> None:
    output = query(connection, sql, parameters)
    assert output == {"rows": [{"id": 2, "total": "20.00"}], "row_count": 1}


def test_without_parameters_a_percent_sign_is_one(connection: Connection) -> None:
    assert query(connection, "SELECT id FROM invoice WHERE note LIKE 'a%'")["row_count"] == 1


def test_a_parameter_is_never_sql(connection: Connection) -> None:
    attack = "x'; DROP TABLE invoice; --"
    output = query(connection, "SELECT %s AS said, count(*) FROM invoice", [attack])
    assert output["rows"] == [{"said": attack, "count": 2}]


def test_what_json_has_no_type_for_becomes_a_text(connection: Connection) -> None:
    sql = """
        SELECT 1.10::numeric AS d, '2026-01-02 03:04:05+00'::timestamptz AT TIME ZONE 'UTC' AS t,
            '2026-01-02'::date AS day, '03:04'::time AS hour, '1 day'::interval AS long,
            'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u,
            '\\x00ff'::bytea AS b, 'NaN'::float8 AS n, ARRAY[1.5::numeric] AS many, '{"a": [1.5]}'::jsonb AS j,
            '10.0.0.1'::inet AS ip, true AS yes, NULL AS nothing, 2::bigint AS big
    """
    (row,) = query(connection, sql)["rows"]
    assert row == {
        "d": "1.10",
        "t": "2026-01-02T03:04:05",
        "day": "2026-01-02",
        "hour": "03:04:00",
        "long": "1 day, 0:00:00",
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "b": "AP8=",
        "n": "nan",
        "many": ["1.5"],
        "j": {"a": [1.5]},
        "ip": "10.0.0.1",
        "yes": True,
        "nothing": None,
        "big": 2,
    }


def test_objects_are_json_to_the_database(connection: Connection) -> None:
    sql = "SELECT %s::jsonb ->> 'a' AS a, jsonb_array_length(%s) AS n"
    assert query(connection, sql, [{"a": "x"}, [{"b": 1}, 2]])["rows"] == [{"a": "x", "n": 2}]


def test_a_change_says_how_many_rows_it_touched(connection: Connection) -> None:
    assert query(connection, "UPDATE invoice SET total = 0") == {"rows": [], "row_count": 2}
    assert query(connection, "CREATE TEMP TABLE other ()") == {"rows": [], "row_count": 0}
    output = query(connection, "DELETE FROM invoice RETURNING id")
    assert output == {"rows": [{"id": 1}, {"id": 2}], "row_count": 2}


def test_of_several_statements_the_last_one_counts(connection: Connection) -> None:
    output = query(connection, "DELETE FROM invoice; SELECT count(*) AS left FROM invoice")
    assert output["rows"] == [{"left": 0}]


def test_too_many_rows_are_refused(connection: Connection) -> None:
    sql = "SELECT generate_series(1, 3) AS n"
    assert query(connection, sql, max_rows=3)["row_count"] == 3
    with pytest.raises(StepError, match="3 rows are over max_rows of 2; add a LIMIT") as refused:
        query(connection, sql, max_rows=2)
    assert refused.value.code is Code.OUTPUT_TOO_LARGE
    assert query(connection, "SELECT 1 AS one")["rows"] == [{"one": 1}]


# --- failures
@pytest.mark.parametrize(
    ("sql", "parameters", "reason"),
    [
        ("SELECT 1", "x", "parameters: must be a list"),
        ("SELECT 1 AS a, 2 AS a", None, "two columns are called 'a'"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    connection: Connection, sql: str, parameters: Any, reason: str
) -> None:
    with pytest.raises(StepError, match=f"sql.query: {reason}") as refused:
        query(connection, sql, parameters)
    assert refused.value.code is Code.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [
        ("SELEC 1", None, 'SyntaxError, syntax error at or near "SELEC"'),
        ("SELECT 1 FROM missing", None, 'relation "missing" does not exist'),
        (
            "INSERT INTO invoice VALUES (1, 1, %s)",
            ["hidden"],
            'UniqueViolation, duplicate key value violates unique constraint "invoice_pkey"',
        ),
        ("SELECT %s::int", ["hidden"], 'invalid input syntax for type integer: "\\*\\*\\*"'),
        ("SELECT %(a)s::int", {"a": "hidden"}, 'integer: "\\*\\*\\*"'),
        ("SELECT %s, %s", ["hidden"], "the query has 2 placeholders but 1 parameters"),
        ("SELECT '%' || %s", ["hidden"], "only '%s', '%b', '%t' are allowed as placeholders"),
    ],
)
def test_a_failure_has_the_servers_words_and_no_parameter(
    connection: Connection, sql: str, parameters: Any, message: str
) -> None:
    with pytest.raises(StepError, match=message) as failed:
        query(connection, sql, parameters)
    assert failed.value.code is Code.UNKNOWN_ERROR
    assert "hidden" not in failed.value.message
    assert "\n" not in failed.value.message
    assert query(connection, "SELECT 1 AS one")["rows"] == [{"one": 1}]


def test_a_statement_that_takes_too_long_is_a_timeout(connection: Connection) -> None:
    connection.execute("SET statement_timeout = '100ms'")
    with pytest.raises(StepError, match="canceling statement due to statement timeout") as failed:
        query(connection, "SELECT pg_sleep(30)")
    assert failed.value.code is Code.TIMEOUT


def test_a_lost_connection_is_a_passing_failure(connection: Connection) -> None:
    pid = connection.info.backend_pid
    with connect() as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
    for _ in range(2):
        with pytest.raises(StepError) as failed:
            query(connection, "SELECT 1")
        assert failed.value.code is Code.TRANSIENT_ERROR


def test_a_serialization_failure_and_a_deadlock_are_passing_failures(
    connection: Connection,
) -> None:
    for state in ("40001", "40P01"):
        sql = f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{state}'; END $$"
        with pytest.raises(StepError, match="again") as failed:
            query(connection, sql)
        assert failed.value.code is Code.TRANSIENT_ERROR


def test_parallel_steps_may_share_a_connection(connection: Connection) -> None:
    found: list[int] = []

    def ask(number: int) -> None:
        rows = query(connection, "SELECT %s::int AS n, pg_sleep(0.01)", [number])["rows"]
        found.append(rows[0]["n"])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))
