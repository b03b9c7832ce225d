"""resources.gate.brokers.postgres_login: the login of a grant, and what a run may add to it."""

from typing import Any

import pytest

from isolane.protocol import Grant
from resources.gate.brokers.postgres_login import (
    PostgresLogin,
    passed_on,
    postgres_login,
    unknown_options,
)
from resources.gate.brokers.postgres_messages import StartupPacket
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.streams import Proof

CONFIG = {"host": "db.example.com", "dbname": "shop", "user": "ada"}


def login(**changes: Any) -> PostgresLogin:
    grant = Grant(
        name="billing",
        type="database",
        definition="billing-db",
        scope="execution",
        config=CONFIG | changes,
        secrets={"password": "correct-horse"},
    )
    return postgres_login(grant)


def startup(**parameters: str) -> StartupPacket:
    pairs = tuple((name.encode(), value.encode()) for name, value in parameters.items())
    return StartupPacket(minor=0, parameters=pairs)


def test_a_grant_has_all_that_a_login_needs() -> None:
    found = login(sslmode="require", connect_timeout_s=7)
    assert (found.place, found.user, found.dbname) == ("db.example.com:5432", "ada", "shop")
    assert (found.password, found.connect_timeout_s, found.ca) == ("correct-horse", 7, "")
    assert "correct-horse" not in repr(found)


@pytest.mark.parametrize(
    ("sslmode", "proof", "needs_tls"),
    [
        ("disable", None, False),
        ("allow", Proof.NOTHING, False),
        ("prefer", Proof.NOTHING, False),
        ("require", Proof.NAME, True),
        ("verify-ca", Proof.CHAIN, True),
        ("verify-full", Proof.NAME, True),
    ],
)
def test_each_sslmode_says_what_the_server_must_prove(
    sslmode: str, proof: Proof | None, needs_tls: bool
) -> None:
    found = login(sslmode=sslmode)
    assert (found.proof, found.needs_tls) == (proof, needs_tls)


def test_settings_are_passed_on_and_the_login_is_the_definitions() -> None:
    asked = startup(application_name="exec_1", DateStyle="ISO", user="ada")
    assert passed_on(login(), asked) == (
        (b"user", b"ada"), (b"database", b"shop"), (b"application_name", b"exec_1"), (b"DateStyle", b"ISO"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"user": "eve"}, "user 'eve' is not this resource's: connect as user 'ada' to database 'shop'"),
        ({"database": "other"}, "database 'other' is not"),
        ({"replication": "true"}, "'replication' is not passed on: leave it out"),
        ({"User": "ada"}, "'User' is not passed on"),
        ({"enable_seqscan": "off"}, "set it in options, as in '-c enable_seqscan=…'"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_way_out(asked: dict[str, str], told: str) -> None:
    with pytest.raises(PostgresRefusal) as caught:
        passed_on(login(), startup(**asked))
    assert told in str(caught.value)
    assert b"C28000\0" in caught.value.answer


def test_options_of_the_protocol_are_declined() -> None:
    asked = startup(**{"_pq_.x": "1", "application_name": "y"})
    assert unknown_options(asked) == (b"_pq_.x",)
    assert b"_pq_.x" not in dict(passed_on(login(), asked))
