"""resources.issuers.remote_postgres: a connection that gives up by the worker's own clock."""

import time

import pytest

from resources.issuers.base import REMOTE_SECONDS, IssueError
from resources.issuers.database import DatabaseIssuer
from resources.issuers.remote_postgres import remote_connection
from tests.customer import Customer
from tests.integration.resources.issuers.resource_requests import database_request


def test_it_says_who_it_is_and_bounds_its_statements(customer: Customer) -> None:
    (credential,) = DatabaseIssuer().plan(database_request(customer))
    with remote_connection(credential.data) as connection:
        row = connection.execute(
            "SELECT current_setting('application_name'), current_setting('statement_timeout'),"
            " current_setting('idle_in_transaction_session_timeout'), current_setting('search_path')"
        ).fetchone()
    assert row == ("isolane-worker", "3s", "3s", "pg_catalog")
    assert connection.closed


def test_it_waits_for_no_answer_past_its_deadline(customer: Customer) -> None:
    (credential,) = DatabaseIssuer().plan(database_request(customer))
    begun = time.monotonic()
    with pytest.raises(IssueError, match="timeout"):
        with remote_connection(credential.data, deadline=begun + 0.5) as connection:
            connection.execute("SELECT pg_sleep(2)")
    assert time.monotonic() - begun < 1.5 < REMOTE_SECONDS
    assert connection.closed


def test_an_error_quotes_no_statement(customer: Customer) -> None:
    (credential,) = DatabaseIssuer().plan(database_request(customer))
    with pytest.raises(IssueError, match="syntax error") as caught:
        with remote_connection(credential.data) as connection:
            connection.execute("CREATE ROLE x PASSWORD 'precious' AND MORE")
    assert "precious" not in str(caught.value)
    assert caught.value.__suppress_context__
