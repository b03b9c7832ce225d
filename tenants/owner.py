"""The owner's connection: only `isolane migrate` and the provisioner have it."""

from typing import cast

from django.db import connections
from django.utils.connection import ConnectionDoesNotExist

from foundation.errors import IsolaneError
from tenants.postgresql.base import DatabaseWrapper

OWNER = "owner"
# Any number. Held exclusively while public and the template change, shared while a tenant is created, migrated or
# dropped.
MIGRATION_LOCK = 7_231_001


class OwnerNeeded(IsolaneError):
    """This process was not given the owner's URL, or the roles are not as required."""

    code = "owner_needed"
    http_status = 503
    title = "This process cannot do that"


def owner_connection() -> DatabaseWrapper:
    """Return the connection that may change schemas and roles."""
    try:
        return cast("DatabaseWrapper", connections[OWNER])
    except ConnectionDoesNotExist:
        raise OwnerNeeded(
            "Schemas and roles are changed with the owner's rights: set DATABASE_OWNER_URL for this process. "
            "Only 'isolane migrate' and 'isolane provisioner' need it."
        ) from None
