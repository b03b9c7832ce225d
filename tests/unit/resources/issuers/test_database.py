"""resources.issuers.database: what it is going to make."""

from typing import Any
from uuid import UUID

from resources.issuers.base import Ask
from resources.issuers.database import DatabaseIssuer

LONGEST_EPOCH = 2**31 - 1  # of its column


def ask(**changes: Any) -> Ask:
    values: dict[str, Any] = {
        "tenant": "acme",
        "execution_id": UUID(int=7),
        "epoch": 3,
        "name": "billing",
        "type": "database",
        "definition": "billing-db",
        "scope": "execution",
        "eager": False,
        "config": {
            "host": "db.test",
            "dbname": "shop",
            "user": "admin",
            "mint": {"roles": ["reporting"]},
        },
        "secrets": {"password": "of-the-admin"},
        "address": "192.0.2.7",
        "seconds_left": 10.0,
    }
    return Ask(**{**values, **changes})


def test_a_role_s_name_holds_execution_and_epoch_and_fits_any_server() -> None:
    (thing,) = DatabaseIssuer().things(ask(epoch=LONGEST_EPOCH, definition="n" * 63))
    assert thing.kind == "database.role"
    assert thing.far_id.startswith(f"iso_{UUID(int=7).hex}_{LONGEST_EPOCH}_")
    assert len(thing.far_id.encode()) <= 63


def test_what_is_kept_is_what_revoking_takes() -> None:
    (thing,) = DatabaseIssuer().things(ask())
    assert thing.data == {
        "host": "db.test", "port": 5432, "dbname": "shop", "user": "admin", "password": "of-the-admin",
        "sslmode": "prefer", "address": "192.0.2.7", "roles": ["reporting"],
    }  # fmt: skip
    assert "of-the-admin" not in repr(thing)


def test_epochs_and_definitions_have_roles_of_their_own() -> None:
    asks = [ask(), ask(epoch=4), ask(definition="other"), ask(execution_id=UUID(int=8))]
    names = [thing.far_id for one in asks for thing in DatabaseIssuer().things(one)]
    assert len(set(names)) == 4
