"""isolane.providers.database: what a definition may say, and what psycopg is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import certifi
import psycopg
import pytest

from isolane.protocol import Grant
from isolane.providers.database import Database, DatabaseConfig, Mint, root_certificates
from isolane.shapes import ShapeError, build
from tests.tls_certificates import TestAuthority

CONFIG = {"host": "db.example.com", "dbname": "shop", "user": "ada"}


def grant(address: str = "", **config: Any) -> Grant:
    return Grant(
        name="billing",
        type="database",
        definition="billing-db",
        scope="execution",
        config=CONFIG | config,
        secrets={"password": "correct-horse"},
        address=address,
    )


@pytest.fixture
def authority(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    connect = MagicMock()
    connect.return_value.info.server_version = 180_000
    monkeypatch.setattr(psycopg, "connect", connect)
    return connect


def test_it_connects_to_the_address_under_the_name(connect: MagicMock) -> None:
    Database().create(grant("192.0.2.7", statement_timeout_s=1.5, sslmode="verify-full"), "the tag")
    said = connect.call_args.kwargs
    expected = {
        "host": "db.example.com", "hostaddr": "192.0.2.7", "port": 5432, "dbname": "shop", "user": "ada",
        "password": "correct-horse", "sslmode": "verify-full", "connect_timeout": 5, "application_name": "the tag",
        "options": "-c statement_timeout=1500", "autocommit": True, "sslrootcert": certifi.where(),
    }  # fmt: skip
    assert said.items() >= expected.items()


def test_without_an_address_the_name_is_looked_up(connect: MagicMock) -> None:
    Database().create(grant(), "the tag")
    said = connect.call_args.kwargs
    assert said["hostaddr"] is said["options"] is said["sslrootcert"] is None


@pytest.mark.parametrize(
    ("sslmode", "is_verified"),
    [("disable", False), ("prefer", False), ("require", False), ("verify-ca", True), ("verify-full", True)],
)  # fmt: skip
def test_who_verifies_a_server_knows_the_public_authorities(
    sslmode: str, is_verified: bool
) -> None:
    with root_certificates(sslmode, "") as file:
        assert file == (certifi.where() if is_verified else None)


@pytest.mark.parametrize(
    ("sslmode", "is_given"), [("prefer", False), ("require", True), ("verify-ca", True), ("verify-full", True)]
)  # fmt: skip
def test_authorities_of_a_definition_are_in_a_file_while_it_is_connected(
    sslmode: str, is_given: bool
) -> None:
    with root_certificates(sslmode, "the certificates") as name:
        assert (name is not None) == is_given
        file = Path(name or "none")
        assert not is_given or file.read_text(encoding="ascii") == "the certificates"
    assert not file.exists()


def test_a_broker_has_the_password_and_speaks_tls(
    connect: MagicMock, authority: TestAuthority
) -> None:
    whole = grant("127.7.0.1", sslmode="verify-full", ca=authority.pem)
    Database().create(replace(whole, brokered=True, secrets={}), "the tag")
    said = connect.call_args.kwargs
    expected = {
        "host": "db.example.com", "hostaddr": "127.7.0.1", "dbname": "shop", "user": "ada", "sslmode": "disable",
    }  # fmt: skip
    assert said.items() >= expected.items()
    assert "password" not in said
    assert "sslrootcert" not in said


def test_an_old_server_is_not_asked_for_what_it_does_not_know(connect: MagicMock) -> None:
    connect.return_value.info.server_version = 130_000
    Database().create(grant(), "the tag")
    connect.return_value.execute.assert_not_called()


def test_a_server_that_cannot_notice_is_no_error(connect: MagicMock) -> None:
    connect.return_value.execute.side_effect = psycopg.errors.InvalidParameterValue
    assert Database().create(grant(), "the tag") is connect.return_value


def test_a_half_made_connection_is_closed(connect: MagicMock) -> None:
    connect.return_value.execute.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        Database().create(grant(), "the tag")
    connect.return_value.close.assert_called_once_with()


def test_a_whole_config_is_read() -> None:
    config = build(DatabaseConfig, CONFIG | {"mint": {"roles": ["reporting"]}}, "config")
    assert config.mint == Mint(roles=("reporting",))
    assert (config.port, config.sslmode, config.connect_timeout_s) == (5432, "prefer", 5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"host": ""}, "host: '' is empty"),
        ({"user": "a\0b"}, "user: .* contains a NUL"),
        ({"port": 0}, "port: 0 is not between 1 and 65535"),
        ({"sslmode": "maybe"}, "sslmode: expected one of disable, allow"),
        ({"connect_timeout_s": 61}, "connect_timeout_s: 61 is not between 1 and 60"),
        ({"statement_timeout_s": 0}, "statement_timeout_s: 0.0 is not between"),
        ({"mint": {"roles": []}}, "mint.roles: name at least one role"),
        ({"mint": {"roles": [""]}}, "mint.roles: name at least one role"),
        ({"password": "x"}, "unknown field 'password'"),
        ({"credentials": "outside"}, "credentials: expected one of brokered, inside"),
        ({"ca": "x", "sslmode": "verify-full"}, "ca: contains no certificate in PEM"),
    ],
)
def test_a_bad_config_names_the_field(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        build(DatabaseConfig, CONFIG | change, "config")


def test_authorities_need_a_mode_that_asks_for_them(authority: TestAuthority) -> None:
    config = CONFIG | {"ca": authority.pem}
    assert build(DatabaseConfig, config | {"sslmode": "verify-ca"}, "config").ca == authority.pem
    with pytest.raises(ShapeError, match="ca: with sslmode 'prefer' no certificate is checked"):
        build(DatabaseConfig, config, "config")


def test_minting_needs_a_password() -> None:
    minting = build(DatabaseConfig, CONFIG | {"mint": {"roles": ["reporting"]}}, "config")
    plain = build(DatabaseConfig, CONFIG, "config")
    with pytest.raises(ValueError, match=r"secrets\.password: missing"):
        Database().check_definition(minting, frozenset())
    Database().check_definition(minting, frozenset({"password"}))
    Database().check_definition(plain, frozenset())
