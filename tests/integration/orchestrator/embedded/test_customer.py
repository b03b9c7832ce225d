"""The PostgreSQL that stands for a customer's: its rights, and its log."""

import psycopg
import pytest
from psycopg import errors, sql

from orchestrator.embedded.customer import CustomerLogin, CustomerPostgres
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.supervisor import Supervisor
from tests.customer import Customer
from tests.waiting import wait_for


def test_passwords_are_needed_and_are_in_no_log(customer: Customer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        customer.connect(CustomerLogin(user=customer.admin_user, password="hunter2"))
    assert customer.log_lines("SCRAM-SHA-256$4096:") != []
    for login in (customer.admin, customer.reader):
        assert customer.log_lines(login.password) == []
        assert login.password not in repr(login)


def test_the_administrator_makes_roles_and_hands_the_right_to_read_on(customer: Customer) -> None:
    made = CustomerLogin(user="iso_made_here")
    name = sql.Identifier(made.user)
    with customer.connect(customer.admin) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, made.password))
        admin.execute(sql.SQL("GRANT reporting TO {}").format(name))
    try:
        assert customer.roles("iso_made") == [made.user]
        for login in (made, customer.reader):
            with customer.connect(login) as reader:
                rows = reader.execute("SELECT sum(total) AS total FROM invoice").fetchall()
                assert str(rows[0]["total"]) == "588.65"
                with pytest.raises(errors.InsufficientPrivilege):
                    reader.execute("DELETE FROM invoice")
    finally:
        with customer.connect(customer.admin) as admin:
            admin.execute(sql.SQL("DROP ROLE {}").format(name))
    assert customer.roles("iso_made") == []


def test_the_administrator_is_no_superuser(customer: Customer) -> None:
    with customer.connect(customer.admin) as admin:
        rows = admin.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles"
            " WHERE rolname = current_user"
        ).fetchall()
    assert list(rows[0].values()) == [False, True, False, False]


def test_a_visit_is_seen_while_it_lasts_and_remembered_afterwards(customer: Customer) -> None:
    tag = "isolane acme 0f3c9a52"
    with customer.connect(customer.reader) as reader:
        reader.execute("SELECT set_config('application_name', %s, false)", [tag])
        (seen,) = customer.activity("0f3c9a52")
        assert (seen["usename"], seen["application_name"]) == ("shop_reader", tag)
        assert customer.activity("0f3c9a53") == []
    wait_for(lambda: not customer.activity("0f3c9a52"), "the session to end")
    (last,) = wait_for(
        lambda: [line for line in customer.log_lines(tag) if "disconnection:" in line],
        "the end of the session in the log",
    )
    assert f"shop_reader@shop {tag} LOG:" in last


def test_a_second_start_begins_anew(paths: EmbeddedPaths, supervisor: Supervisor) -> None:
    for _ in range(2):
        server = CustomerPostgres(paths)
        server.prepare()
        supervisor.start(server.child())
        server.bootstrap()
        with psycopg.connect(server.url(server.admin)) as admin:
            assert admin.execute("SELECT count(*) FROM invoice").fetchone() == (5,)
            admin.execute("DELETE FROM invoice")
        supervisor.stop_all()
    paths.clear()
    assert not server.log.exists()
    assert not paths.customer_data.exists()
