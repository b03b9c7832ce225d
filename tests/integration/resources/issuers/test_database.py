"""resources.issuers.database against a customer's PostgreSQL, by an administrator that is not a superuser."""

import dataclasses
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import DictRow

from isolane.protocol import Grant
from orchestrator.norp.observed_servers import observed_postgres
from resources.issuers.base import REMOTE_SECONDS, Credential, IssueError, ResourceRequest
from resources.issuers.database import DatabaseIssuer
from tests.customer import Customer
from tests.integration.resources.issuers.resource_requests import database_request
from tests.waiting import wait_for

ISSUER = DatabaseIssuer()


@pytest.fixture
def remote(customer: Customer) -> Iterator["psycopg.Connection[DictRow]"]:
    """The customer's server as its superuser; no role of a run is left on it."""
    with customer.connect() as connection:
        yield connection
    assert customer.roles("iso_") == []


def enter(customer: Customer, grant: Grant, **changes: Any) -> "psycopg.Connection[Any]":
    """Connect as a runtime would."""
    config = grant.config
    asked = {
        "host": config["host"],
        "hostaddr": grant.address,
        "port": config["port"],
        "dbname": config["dbname"],
        "user": config["user"],
        "password": grant.secrets["password"],
        **changes,
    }
    return psycopg.connect(autocommit=True, **asked)


def issue(request: ResourceRequest) -> tuple[Grant, Sequence[Credential]]:
    credentials = ISSUER.plan(request)
    return ISSUER.issue(request, credentials), credentials


def value(connection: "psycopg.Connection[Any]", query: str, *values: object) -> Any:
    """The only value of the only row."""
    (row,) = connection.execute(query.encode(), values).fetchall()
    return next(iter(row.values())) if isinstance(row, dict) else row[0]


def test_a_role_of_the_run_can_do_what_its_roles_can_and_no_more(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    request = database_request(customer)
    grant, (credential,) = issue(request)
    with enter(customer, grant) as connection:
        assert value(connection, "SELECT current_user") == credential.remote_id
        assert value(connection, "SELECT count(*) FROM invoice") == 5
        for refused in (
            "DELETE FROM invoice",
            "CREATE ROLE evil",
            "SET ROLE reporting",
            f"SET ROLE {customer.admin_user}",
            f"GRANT reporting TO {customer.reader.user}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(refused.encode())
    (role,) = remote.execute(
        "SELECT *, rolvaliduntil - now() AS left FROM pg_roles WHERE rolname = %s",
        [credential.remote_id],
    ).fetchall()
    powers = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    assert [power for power in powers if role[power]] == []
    assert role["rolconnlimit"] == 10
    assert 60 < role["left"].total_seconds() <= 90
    ISSUER.revoke(credential)


def test_the_grant_holds_nothing_of_the_administrator(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    grant, (credential,) = issue(database_request(customer))
    assert grant.config["user"] == credential.remote_id
    assert "mint" not in grant.config
    assert set(grant.secrets) == {"password"}
    assert customer.admin_password not in str(dataclasses.asdict(grant))
    assert customer.admin_password not in repr(credential)
    ISSUER.revoke(credential)


def test_without_mint_the_definitions_own_login_is_handed_on(customer: Customer) -> None:
    request = database_request(customer, mint=None)
    assert ISSUER.plan(request) == ()
    grant = ISSUER.issue(request, ())
    assert "mint" not in grant.config
    assert grant.config["user"] == customer.admin_user
    assert grant.secrets == {"password": customer.admin_password}


def test_the_password_is_in_no_statement_that_the_server_logs(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    grant, (credential,) = issue(database_request(customer))
    ISSUER.revoke(credential)
    made = [line for line in customer.log_lines(credential.remote_id) if "CREATE ROLE" in line]
    assert len(made) == 1
    assert "SCRAM-SHA-256$" in made[0]
    assert "isolane-worker" in made[0]
    assert customer.log_lines(grant.secrets["password"]) == []


def test_after_revocation_neither_an_old_session_nor_a_saved_login_works(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    grant, (credential,) = issue(database_request(customer))
    with enter(customer, grant) as idle, enter(customer, grant) as busy:
        working = threading.Thread(target=_sleep_at, args=(busy,))
        working.start()
        wait_for(lambda: _active(remote, credential), "a session at work")
        ISSUER.revoke(credential)
        working.join(10)
        assert not working.is_alive()
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        enter(customer, grant)


def _sleep_at(connection: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT pg_sleep(60)")


def _active(remote: "psycopg.Connection[DictRow]", credential: Credential) -> list[DictRow]:
    return remote.execute(
        "SELECT pid FROM pg_stat_activity WHERE usename = %s AND state = 'active'",
        [credential.remote_id],
    ).fetchall()


def test_revoking_an_old_epoch_leaves_the_new_one_alone(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    execution_id = uuid4()
    old_grant, (old,) = issue(database_request(customer, execution_id=execution_id, epoch=1))
    new_grant, (new,) = issue(database_request(customer, execution_id=execution_id, epoch=11))
    with enter(customer, new_grant) as connection:
        ISSUER.revoke(old)
        ISSUER.revoke(old)
        assert value(connection, "SELECT count(*) FROM invoice") == 5
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            enter(customer, old_grant)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            enter(customer, new_grant, password=old_grant.secrets["password"])
    assert customer.roles(f"iso_{execution_id.hex}") == [new.remote_id]
    ISSUER.revoke(new)


def test_two_definitions_of_a_placement_have_a_role_each(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    execution_id = uuid4()
    _, (first,) = issue(database_request(customer, execution_id=execution_id, definition="a"))
    grant, (second,) = issue(database_request(customer, execution_id=execution_id, definition="b"))
    assert first.remote_id != second.remote_id
    ISSUER.revoke(first)
    with enter(customer, grant) as connection:
        assert value(connection, "SELECT 1") == 1
    ISSUER.revoke(second)


@pytest.fixture
def made(remote: "psycopg.Connection[DictRow]") -> Iterator[None]:
    """A schema in which runs may make credentials, and the administrator may not."""
    remote.execute("CREATE SCHEMA made")
    remote.execute("GRANT USAGE, CREATE ON SCHEMA made TO reporting")
    remote.execute("GRANT TEMPORARY, CREATE ON DATABASE shop TO reporting")
    yield
    remote.execute("REVOKE TEMPORARY, CREATE ON DATABASE shop FROM reporting")
    remote.execute("DROP SCHEMA made CASCADE")


def test_what_the_run_made_stays_with_the_role_that_it_had(
    customer: Customer, remote: "psycopg.Connection[DictRow]", made: None
) -> None:
    grant, (credential,) = issue(database_request(customer))
    with enter(customer, grant) as connection:
        connection.execute("CREATE TABLE made.report AS SELECT * FROM invoice")
        connection.execute("GRANT SELECT ON made.report TO reporting")
        connection.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
        connection.execute("CREATE TEMPORARY TABLE scratch (id int)")
        ISSUER.revoke(credential)
    owner = value(remote, "SELECT tableowner FROM pg_tables WHERE tablename = 'report'")
    assert owner == "reporting"
    assert value(remote, "SELECT count(*) FROM made.report") == 5
    assert value(remote, "SELECT count(*) FROM pg_default_acl") == 0
    grant, (credential,) = issue(database_request(customer))
    with enter(customer, grant) as connection:
        connection.execute("DROP TABLE made.report")
    ISSUER.revoke(credential)


def test_code_that_a_run_left_gets_no_more_power_than_the_run_had(
    customer: Customer, remote: "psycopg.Connection[DictRow]", made: None
) -> None:
    with customer.connect(customer.admin) as admin:
        admin.execute("CREATE TABLE payroll AS SELECT 'precious' AS amount")
    grant, (first,) = issue(database_request(customer))
    with enter(customer, grant) as connection:
        connection.execute("CREATE VIEW made.peep AS SELECT * FROM payroll")
        connection.execute(
            "CREATE FUNCTION made.rise() RETURNS void LANGUAGE plpgsql SECURITY DEFINER"
            " AS $$BEGIN EXECUTE 'CREATE ROLE risen'; END$$"
        )
        connection.execute("CREATE SCHEMA own")
        connection.execute("CREATE TYPE own.mood AS ENUM ('fine')")
        connection.execute("GRANT ALL ON made.peep TO PUBLIC")
    ISSUER.revoke(first)
    grant, (second,) = issue(database_request(customer))
    with enter(customer, grant) as connection:
        for attack in ("SELECT * FROM made.peep", "SELECT made.rise()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(attack.encode())
        connection.execute("DROP SCHEMA own CASCADE")
    ISSUER.revoke(second)
    remote.execute("DROP VIEW made.peep")
    remote.execute("DROP TABLE payroll")


# Each fits better what some statement of the worker says than the server's own of that name does.
DECOYS = (
    "hashtextextended(text, int) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN {tell}; RETURN 1; END$$",
    "unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$BEGIN {tell}; RETURN NEXT $1[1]; END$$",
    "pg_terminate_backend(int, smallint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN {tell}; RETURN true; END$$",
    "starts_with(name, text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN {tell}; RETURN true; END$$",
    "same(oid, smallint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN {tell}; RETURN true; END$$",
)


@pytest.fixture
def open_public(remote: "psycopg.Connection[DictRow]") -> Iterator[None]:
    """Runs may make credentials in the schema where everybody looks, as in databases that come from older servers."""
    remote.execute("GRANT CREATE ON SCHEMA public TO reporting")
    remote.execute("CREATE TABLE seen AS SELECT current_user AS who WITH NO DATA")
    remote.execute("GRANT INSERT, SELECT ON seen TO PUBLIC")
    yield
    remote.execute("REVOKE CREATE ON SCHEMA public FROM reporting")
    remote.execute("DROP OPERATOR IF EXISTS public.= (oid, smallint)")
    for decoy in DECOYS:
        remote.execute(f"DROP FUNCTION IF EXISTS public.{decoy.partition(' RETURNS')[0]}".encode())
    remote.execute("DROP TABLE seen")


def test_no_code_that_a_run_left_is_run_by_the_worker(
    customer: Customer, remote: "psycopg.Connection[DictRow]", open_public: None
) -> None:
    request = database_request(customer)
    grant, (first,) = issue(request)
    with enter(customer, grant) as connection:
        for decoy in DECOYS:
            told = decoy.format(tell="INSERT INTO public.seen VALUES (current_user)")
            connection.execute(f"CREATE FUNCTION public.{told}".encode())
        connection.execute(
            "CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = oid, RIGHTARG = smallint)"
        )
        # The decoys work: they catch a session with the usual search_path.
        connection.execute("SELECT starts_with(current_user, 'iso_'), unnest('{x}'::text[])")
        ISSUER.revoke(first)
    _, (second,) = issue(database_request(customer))
    with observed_postgres(second.data) as server:
        assert server.snapshot().credentials == (second.remote_id,)
    ISSUER.revoke(second)
    assert remote.execute("SELECT DISTINCT who FROM seen").fetchall() == [{"who": first.remote_id}]


def test_what_the_first_role_may_not_own_goes_to_the_next(
    customer: Customer, remote: "psycopg.Connection[DictRow]", made: None
) -> None:
    with customer.connect(customer.admin) as admin:
        admin.execute("CREATE ROLE guest")
        admin.execute("GRANT CONNECT ON DATABASE shop TO guest")
    grant, (credential,) = issue(database_request(customer, roles=("guest", "reporting")))
    with enter(customer, grant) as connection:
        connection.execute("CREATE FUNCTION made.one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    ISSUER.revoke(credential)
    owner = value(remote, "SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'one'")
    assert owner == "reporting"
    remote.execute("DROP OWNED BY guest")
    remote.execute("DROP ROLE guest")


def test_what_it_made_in_another_database_does_not_keep_the_role_alive(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    remote.execute("CREATE DATABASE side")
    with psycopg.connect(
        remote.info.dsn, password=remote.info.password, autocommit=True, dbname="side"
    ) as side:
        side.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        grant, (credential,) = issue(database_request(customer))
        with enter(customer, grant, dbname="side") as connection:
            connection.execute("CREATE TABLE hidden (id int)")
        ISSUER.revoke(credential)
        owner = value(side, "SELECT tableowner FROM pg_tables WHERE tablename = 'hidden'")
        assert owner == "reporting"
    remote.execute("DROP DATABASE side")


def test_revoking_what_was_never_made_is_fine(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    (credential,) = ISSUER.plan(database_request(customer))
    ISSUER.revoke(credential)


def test_a_revocation_waits_for_an_issue_that_is_under_way(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    request = database_request(customer)
    (credential,) = ISSUER.plan(request)
    with customer.connect() as holding:
        # GRANT waits for the session that holds the role's row.
        holding.execute("BEGIN")
        holding.execute("COMMENT ON ROLE reporting IS 'held'")
        holding.execute("LOCK pg_auth_members IN ACCESS EXCLUSIVE MODE")
        issuing = threading.Thread(target=ISSUER.issue, args=(request, [credential]))
        issuing.start()
        wait_for(lambda: _waiting(remote), "an issue that waits for the lock")
        revoking = threading.Thread(target=ISSUER.revoke, args=(credential,))
        revoking.start()
        wait_for(lambda: len(_waiting(remote)) == 2, "a revocation that waits for the issue")
        holding.execute("ROLLBACK")
        issuing.join(10)
        revoking.join(10)
    assert customer.roles(credential.remote_id) == []


HOLDS = {
    "an advisory lock": "SELECT pg_advisory_lock(hashtextextended(current_user, 0)), pg_sleep(100)",
    "its own password": "ALTER ROLE CURRENT_USER PASSWORD 'of-its-own'; SELECT pg_sleep(100)",
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_a_run_cannot_hold_up_its_own_revocation(
    customer: Customer, remote: "psycopg.Connection[DictRow]", hold: str
) -> None:
    grant, (credential,) = issue(database_request(customer))
    connection = enter(customer, grant)
    connection.pgconn.send_query(hold.encode())
    connection.pgconn.flush()
    wait_for(lambda: _sleeping(remote, credential), "a run that holds it")
    connection.close()  # at the server the statement goes on
    begun = time.monotonic()
    ISSUER.revoke(credential)
    assert time.monotonic() - begun < 2
    assert customer.roles(credential.remote_id) == []
    assert _active(remote, credential) == []


def _sleeping(remote: "psycopg.Connection[DictRow]", credential: Credential) -> list[DictRow]:
    return remote.execute(
        "SELECT pid FROM pg_stat_activity WHERE usename = %s AND wait_event = 'PgSleep'",
        [credential.remote_id],
    ).fetchall()


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_role_that_somebody_is_changing_is_revoked_after_that(
    customer: Customer, remote: "psycopg.Connection[DictRow]", end: str
) -> None:
    grant, (credential,) = issue(database_request(customer))
    with customer.connect() as holding, ThreadPoolExecutor(1) as threads:
        holding.execute("BEGIN")
        holding.execute(f"ALTER ROLE {credential.remote_id} CONNECTION LIMIT 9".encode())
        revoking = threads.submit(ISSUER.revoke, credential)
        wait_for(lambda: _waiting(remote), "a revocation that waits")
        holding.execute(end.encode())
        revoking.result(10)
    assert customer.roles(credential.remote_id) == []
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        enter(customer, grant)


def test_who_may_make_no_roles_has_nothing_to_revoke(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    reader = customer.reader
    request = dataclasses.replace(
        database_request(customer, user=reader.user), secrets={"password": reader.password}
    )
    (credential,) = ISSUER.plan(request)
    with pytest.raises(IssueError, match="permission denied"):
        ISSUER.issue(request, [credential])
    ISSUER.revoke(credential)


def _waiting(remote: "psycopg.Connection[DictRow]") -> list[DictRow]:
    return remote.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'isolane-worker' AND wait_event_type = 'Lock'"
    ).fetchall()


@pytest.mark.parametrize(
    ("role", "reason"),
    [
        ("nobody", "does not exist"),
        ("postgres", "superuser"),
        ("shop_admin", "administrator"),
        ("like_admin", "administrator"),
        ("maker", "may create roles"),
        ("x'; DROP TABLE invoice; --", "does not exist"),
    ],
)
def test_roles_with_too_much_power_are_refused(
    customer: Customer, remote: "psycopg.Connection[DictRow]", role: str, reason: str
) -> None:
    remote.execute("CREATE ROLE like_admin")
    remote.execute("GRANT shop_admin TO like_admin")
    remote.execute("CREATE ROLE maker CREATEROLE")
    try:
        request = database_request(customer, roles=("reporting", role))
        credentials = ISSUER.plan(request)
        with pytest.raises(IssueError, match=reason) as caught:
            ISSUER.issue(request, credentials)
        assert role in str(caught.value)
        ISSUER.revoke(credentials[0])
    finally:
        remote.execute("DROP ROLE like_admin, maker")


def test_a_role_that_the_administrator_may_not_grant_is_refused_whole(
    customer: Customer, remote: "psycopg.Connection[DictRow]"
) -> None:
    remote.execute("CREATE ROLE foreign_role")
    try:
        request = database_request(customer, roles=("foreign_role",))
        credentials = ISSUER.plan(request)
        with pytest.raises(IssueError, match="permission denied to grant role"):
            ISSUER.issue(request, credentials)
        assert customer.roles("iso_") == []
    finally:
        remote.execute("DROP ROLE foreign_role")


def test_a_wrong_password_is_told_without_the_password(customer: Customer) -> None:
    request = dataclasses.replace(
        database_request(customer), secrets={"password": "hunter2hunter2"}
    )
    credentials = ISSUER.plan(request)
    for attempt in (
        lambda: ISSUER.issue(request, credentials),
        lambda: ISSUER.revoke(credentials[0]),
    ):
        with pytest.raises(IssueError, match="password authentication failed") as caught:
            attempt()
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = {
            "host": "silent.test", "address": "127.0.0.1", "port": silent.getsockname()[1], "dbname": "x",
            "user": "x", "password": "not-used", "sslmode": "disable",
        }  # fmt: skip
        begun = time.monotonic()
        with pytest.raises(IssueError, match=r"silent\.test"):
            ISSUER.revoke(Credential(kind="database.role", remote_id="iso_x", data=login))
        assert time.monotonic() - begun < REMOTE_SECONDS + 1


def test_a_server_that_falls_silent_is_given_up(customer: Customer) -> None:
    request = database_request(customer)
    (credential,) = ISSUER.plan(request)
    with customer.connect() as holding:
        holding.execute("BEGIN")
        holding.execute("LOCK pg_auth_members IN ACCESS EXCLUSIVE MODE")
        begun = time.monotonic()
        with pytest.raises(IssueError):
            ISSUER.issue(request, [credential])
        assert time.monotonic() - begun < REMOTE_SECONDS + 1
