"""resources.issuers.database: what it is going to make."""

from typing import Any
from uuid import UUID

from resources.issuers.base import ResourceRequest
from resources.issuers.database import DatabaseIssuer

LONGEST_EPOCH = 2**31 - 1  # of its column


def request(**changes: Any) -> ResourceRequest:
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
    return ResourceRequest(**{**values, **changes})


def test_a_role_s_name_holds_execution_and_epoch_and_fits_any_server() -> None:
    (credential,) = DatabaseIssuer().plan(request(epoch=LONGEST_EPOCH, definition="n" * 63))
    assert credential.kind == "database.role"
    assert credential.remote_id.startswith(f"iso_{UUID(int=7).hex}_{LONGEST_EPOCH}_")
    assert len(credential.remote_id.encode()) <= 63


def test_what_is_kept_is_what_revoking_takes() -> None:
    (credential,) = DatabaseIssuer().plan(request())
    assert credential.data == {
        "host": "db.test", "port": 5432, "dbname": "shop", "user": "admin", "password": "of-the-admin",
        "sslmode": "prefer", "ca": "", "address": "192.0.2.7", "roles": ["reporting"],
    }  # fmt: skip
    assert "of-the-admin" not in repr(credential)


def test_epochs_and_definitions_have_roles_of_their_own() -> None:
    requests = [
        request(),
        request(epoch=4),
        request(definition="other"),
        request(execution_id=UUID(int=8)),
    ]
    names = [credential.remote_id for one in requests for credential in DatabaseIssuer().plan(one)]
    assert len(set(names)) == 4
