"""resources.gate.brokers.postgres: sessions of a real client at a real PostgreSQL, without a password inside."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from resources.gate.brokers.postgres import PostgresBroker
from resources.gate.brokers.postgres_login import PostgresLogin
from resources.gate.brokers.postgres_messages import cancel_packet
from resources.gate.brokers.share import Share
from tests.customer import Customer
from tests.integration.resources.gate.brokers.brokered import LOOPBACK, Ports
from tests.integration.resources.gate.brokers.conftest import PASSWORD
from tests.tls_certificates import TestAuthority
from tests.waiting import wait_for

NAME = "db.customer.invalid"  # as in the definition; the address is the gate's affair
MEGABYTES = 4


def login_of(customer: Customer, **changes: Any) -> PostgresLogin:
    values: dict[str, Any] = {
        "host": NAME,
        "port": customer.port,
        "user": customer.reader.user,
        "dbname": customer.dbname,
        "password": customer.reader.password,
        "sslmode": "prefer",
        "ca": "",
        "connect_timeout_s": 5,
    }
    return PostgresLogin(**values | changes)


def enter(port: int, login: PostgresLogin, **changes: Any) -> "psycopg.Connection[Any]":
    """Connect as a run does: in clear, without a password."""
    values: dict[str, Any] = {
        "host": LOOPBACK,
        "port": port,
        "user": login.user,
        "dbname": login.dbname,
        "sslmode": "disable",
        "connect_timeout": 10,
        "autocommit": True,
    }
    return psycopg.connect(**values | changes)


Entered = Callable[..., contextlib.AbstractContextManager["psycopg.Connection[Any]"]]


@pytest.fixture
def entered(customer: Customer, opened: Ports) -> Entered:
    """A session through a broker; keyword arguments change the login."""

    @contextlib.contextmanager
    def enter_(target: int = 0, **changes: Any) -> Iterator["psycopg.Connection[Any]"]:
        login = login_of(customer, **changes)
        port = opened.broker(PostgresBroker(login, Share()), target or customer.port)
        with enter(port, login) as connection:
            yield connection

    return enter_


def user_of(connection: "psycopg.Connection[Any]") -> str:
    row = connection.execute("SELECT current_user").fetchone()
    return str(row and row[0])


def test_a_session_works_as_if_the_run_had_logged_in(customer: Customer, opened: Ports) -> None:
    login = login_of(customer)
    port = opened.broker(PostgresBroker(login, Share()), customer.port)
    with enter(
        port, login, application_name="exec_1", options="-c statement_timeout=7s", sslmode="prefer"
    ) as connection:
        assert connection.info.parameter_status("server_encoding") == "UTF8"
        assert user_of(connection) == customer.reader.user
        settings = (
            "SELECT current_setting('application_name'), current_setting('statement_timeout')"
        )
        assert connection.execute(settings).fetchone() == ("exec_1", "7s")
        total = connection.execute("SELECT sum(total) FROM invoice WHERE id = %s", [3]).fetchone()
        assert str(total and total[0]) == "310.25"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM invoice")
    assert opened.wait_ended(1) == [None]


@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize(
    ("user", "password"), [("gate_md5", PASSWORD), ("gate_trust", ""), ("gate_trust", "unused")]
)
def test_a_server_that_asks_otherwise(entered: Entered, user: str, password: str) -> None:
    with entered(user=user, password=password) as connection:
        assert user_of(connection) == user


@pytest.mark.parametrize(
    ("sslmode", "name"),
    [
        ("verify-full", NAME),
        ("require", NAME),
        ("verify-ca", "other.invalid"),
        ("prefer", "other.invalid"),
    ],
)
def test_tls_is_the_brokers_affair(
    customer: Customer,
    opened: Ports,
    authority: TestAuthority,
    entered: Entered,
    sslmode: str,
    name: str,
) -> None:
    front = opened.tls_front(authority.issue(name).server_context(), customer.port)
    ca = "" if sslmode == "prefer" else authority.pem
    with entered(front, sslmode=sslmode, ca=ca) as connection:
        assert user_of(connection) == customer.reader.user
    assert opened.wait_ended(1) == [None]


@pytest.mark.usefixtures("methods")
def test_a_password_in_clear_needs_a_server_that_has_proved_its_name(
    customer: Customer, opened: Ports, authority: TestAuthority, entered: Entered
) -> None:
    front = opened.tls_front(authority.issue(NAME).server_context(), customer.port)
    clear = {"user": "gate_clear", "password": PASSWORD}
    with entered(front, sslmode="verify-full", ca=authority.pem, **clear) as connection:
        assert user_of(connection) == "gate_clear"
    chain = {"sslmode": "verify-ca", "ca": authority.pem}
    for target, tls in ((front, {}), (customer.port, {}), (front, chain)):
        with pytest.raises(psycopg.OperationalError, match="asks for the password in clear"):
            with entered(target, **tls, **clear):
                pass


@pytest.mark.parametrize("has_tls", [False, True])
def test_megabytes_go_both_ways(
    customer: Customer, opened: Ports, authority: TestAuthority, entered: Entered, has_tls: bool
) -> None:
    target, line = customer.port, b"x" * 1023 + b"\n"
    if has_tls:
        target = opened.tls_front(authority.issue(NAME).server_context(), customer.port)
    with entered(target, user="postgres", password=customer_password(customer)) as connection:
        cursor = connection.cursor()
        connection.execute("CREATE TEMP TABLE lines (line text)")
        with cursor.copy("COPY lines FROM STDIN") as copy:
            for _ in range(MEGABYTES * 16):
                copy.write(line * 64)
        with cursor.copy("COPY lines TO STDOUT") as copy:
            assert sum(len(piece) for piece in copy) == MEGABYTES << 20


def customer_password(customer: Customer) -> str:
    with customer.connect() as superuser:
        return superuser.info.password


def test_a_cancel_request_reaches_the_server(
    customer: Customer,
    opened: Ports,
    authority: TestAuthority,
    entered: Entered,
) -> None:
    front = opened.tls_front(authority.issue(NAME).server_context(), customer.port)
    with entered(front, sslmode="verify-full", ca=authority.pem) as connection:
        name = "to be cancelled"
        connection.execute("SELECT set_config('application_name', %s, false)", [name])
        with _sleeping(customer, connection, name) as failed:
            connection.cancel_safe()  # `cancel` would keep the broker's thread from running
        assert [type(error) for error in failed] == [psycopg.errors.QueryCanceled]
        assert user_of(connection) == customer.reader.user
    assert opened.wait_ended(2) == [None, None]


def test_a_cancel_request_for_another_resources_session_is_dropped(
    customer: Customer, opened: Ports
) -> None:
    login = login_of(customer)
    owner = PostgresBroker(login, Share())
    with enter(opened.broker(owner, customer.port), login) as connection:
        connection.execute("SET application_name = 'foreign'")
        (key,) = owner._keys
        other = opened.broker(PostgresBroker(login, Share()), customer.port)
        with _sleeping(customer, connection, "foreign", seconds=0.5) as failed:
            with socket.create_connection((LOOPBACK, other), timeout=10) as stranger:
                stranger.sendall(cancel_packet(key))
                assert stranger.recv(1) == b""
        assert failed == []
    (dropped, _) = opened.wait_ended(2)
    assert "no open session of this resource" in str(dropped)


def test_a_key_is_forgotten_with_its_session(customer: Customer, opened: Ports) -> None:
    login = login_of(customer)
    broker = PostgresBroker(login, Share())
    port = opened.broker(broker, customer.port)
    with enter(port, login):
        assert len(broker._keys) == 1
    opened.wait_ended(1)
    assert broker._keys == set()


def test_a_server_that_goes_away_ends_the_session(
    customer: Customer, opened: Ports, entered: Entered
) -> None:
    with entered() as connection, customer.connect() as superuser:
        pid = connection.info.backend_pid
        superuser.execute("SELECT pg_terminate_backend(%s)", [pid])
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    opened.wait_ended(1)


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_run_that_leaves_without_a_word_leaves_no_session(
    customer: Customer,
    opened: Ports,
    authority: TestAuthority,
    has_tls: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resources.gate.brokers.relay._SILENCE_SECONDS", 0.1)
    target = customer.port
    if has_tls:
        target = opened.tls_front(authority.issue(NAME).server_context(), customer.port)
    login = login_of(customer)
    connection = enter(opened.broker(PostgresBroker(login, Share()), target), login)
    pid = connection.info.backend_pid
    with socket.socket(fileno=connection.fileno()) as same:
        same.shutdown(socket.SHUT_WR)
        opened.wait_ended(1)
        wait_for(lambda: not _lives(customer, pid), "the session to end", 10)
        same.detach()
    connection.close()


@contextlib.contextmanager
def _sleeping(
    customer: Customer, connection: "psycopg.Connection[Any]", name: str, seconds: float = 60
) -> Iterator[list[Exception]]:
    """Let the connection sleep in a thread; its errors are known after the block."""
    failed: list[Exception] = []

    def sleep() -> None:
        try:
            connection.execute("SELECT pg_sleep(%s)", [seconds])
        except psycopg.Error as error:
            failed.append(error)

    thread = threading.Thread(target=sleep)
    thread.start()
    wait_for(
        lambda: any("pg_sleep" in row["query"] for row in customer.activity(name)),
        "the statement to run",
    )
    yield failed
    thread.join(20)


def _lives(customer: Customer, pid: int) -> bool:
    with customer.connect() as superuser:
        return bool(
            superuser.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall()
        )
