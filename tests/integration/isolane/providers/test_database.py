"""The provider `database` against a real PostgreSQL, seen from the server's side."""

import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from isolane.protocol import Grant, dump
from isolane.providers.database import Database
from isolane.tags import tag
from tests.customer import Customer
from tests.waiting import wait_for

SLEEPER = """
import json, sys
from isolane.protocol import Grant
from isolane.providers.database import Database
grant = Grant(**json.loads(sys.stdin.readline()))
connection = Database().create(grant, sys.argv[1])
print("connected", flush=True)
connection.execute("SELECT pg_sleep(100)")
"""


@pytest.fixture
def execution_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def mark(execution_id: str) -> str:
    return tag(tenant_id="acme", execution_id=execution_id, epoch=2)


def a_grant(customer: Customer, **changes: Any) -> Grant:
    config = {
        "host": "db.customer.invalid",  # a name that nobody knows: the address counts
        "port": customer.port,
        "dbname": customer.dbname,
        "user": customer.reader.user,
        "sslmode": "disable",
    }
    return Grant(
        name="billing",
        type="database",
        definition="billing-db",
        scope="execution",
        config=config | changes,
        secrets={"password": customer.reader.password},
        address="127.0.0.1",
    )


@pytest.fixture
def connection(customer: Customer, mark: str) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    provider = Database()
    handle = provider.create(a_grant(customer), mark)
    yield handle
    provider.dispose(handle)


def test_the_server_sees_one_tagged_session_while_it_is_open(
    customer: Customer, execution_id: str, mark: str
) -> None:
    provider = Database()
    handle = provider.create(a_grant(customer), mark)
    said = provider.check(handle)
    (session,) = customer.activity(execution_id)
    assert said["pid"] == session["pid"]
    assert said["user"] == session["usename"] == customer.reader.user
    assert session["application_name"] == mark
    assert said["server_version"].split(".")[0].isdecimal()
    provider.dispose(handle)
    provider.dispose(handle)
    wait_for(lambda: not customer.activity(execution_id), "the session to end")
    with pytest.raises(psycopg.OperationalError, match="the connection is closed"):
        handle.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        provider.check(handle)
    assert customer.activity(execution_id) == []


def test_rows_are_dicts_and_statements_are_committed(
    connection: "psycopg.Connection[dict[str, Any]]",
) -> None:
    assert connection.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]
    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_threads_share_it(connection: "psycopg.Connection[dict[str, Any]]") -> None:
    def ask(number: int) -> Any:
        row = connection.execute(
            "SELECT %s::int AS n, pg_backend_pid() AS pid", [number]
        ).fetchone()
        return row and (row["n"], row["pid"])

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(40)))
    assert [n for n, _ in answers] == list(range(40))
    assert len({pid for _, pid in answers}) == 1


def test_only_what_later_steps_could_not_use_is_replaced(
    connection: "psycopg.Connection[dict[str, Any]]",
) -> None:
    provider = Database()
    assert not provider.is_broken(connection)
    connection.execute("BEGIN")
    assert not provider.is_broken(connection)
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1/0")
    assert provider.is_broken(connection)
    connection.rollback()
    assert not provider.is_broken(connection)
    connection.close()
    assert provider.is_broken(connection)


def test_a_statement_has_its_time(customer: Customer, mark: str) -> None:
    provider = Database()
    handle = provider.create(a_grant(customer, statement_timeout_s=0.1), mark)
    with pytest.raises(psycopg.errors.QueryCanceled):
        handle.execute("SELECT pg_sleep(30)")
    provider.dispose(handle)


def test_a_wrong_password_leaves_no_session_and_is_not_in_the_error(
    customer: Customer, execution_id: str, mark: str
) -> None:
    grant = a_grant(customer)
    grant.secrets["password"] = "wrong-and-secret"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed") as caught:
        Database().create(grant, mark)
    assert "wrong-and-secret" not in str(caught.value)
    assert customer.activity(execution_id) == []


def test_a_disposal_under_a_statement_ends_it_at_the_server(
    customer: Customer, execution_id: str, mark: str
) -> None:
    provider = Database()
    handle = provider.create(a_grant(customer), mark)
    failed: list[BaseException] = []

    def sleep() -> None:
        try:
            handle.execute("SELECT pg_sleep(100)")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at
            failed.append(error)

    thread = threading.Thread(target=sleep, daemon=True)
    thread.start()
    wait_for(lambda: _active(customer, execution_id), "the statement to run")
    provider.dispose(handle)
    # Had its descriptor been freed under the thread, that would read what this new connection gets.
    wait_for(lambda: not customer.activity(execution_id), "the session to end", 10)
    thread.join(10)
    assert [isinstance(error, psycopg.OperationalError) for error in failed] == [True]
    assert handle.closed


def test_a_disposal_that_cannot_have_the_connection_says_so(
    customer: Customer, execution_id: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.providers.database._RELEASE_SECONDS", 0.01)
    provider = Database()
    handle = provider.create(a_grant(customer), mark)
    with handle.lock, pytest.raises(RuntimeError, match="a thread still uses it"):
        provider.dispose(handle)
    wait_for(lambda: not customer.activity(execution_id), "the session to end", 10)
    with pytest.raises(psycopg.OperationalError):
        handle.execute("SELECT 1")
    provider.dispose(handle)


def test_the_server_notices_a_process_that_was_killed_during_a_statement(
    customer: Customer, execution_id: str, mark: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(dump(vars(a_grant(customer))) + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"connected\n"
        wait_for(lambda: _active(customer, execution_id), "the statement to run")
        process.kill()
    wait_for(lambda: not customer.activity(execution_id), "the session to end", 10)


def _active(customer: Customer, execution_id: str) -> bool:
    return any("pg_sleep" in row["query"] for row in customer.activity(execution_id))
