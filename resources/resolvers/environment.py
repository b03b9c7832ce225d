"""Secrets in the worker's environment: `env:NAME` is ISOLANE_SECRET_<TENANT>__<NAME>."""

import os
import re
from typing import ClassVar

from resources.resolvers.base import SecretResolver
from tenants.names import SCHEMA_NAME

# No two underscores in a row, and none at either end: a tenant's name may have both, and only the last pair of
# underscores separates tenant and name.
NAME = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")
_NAME_MAX = 100


class EnvironmentResolver(SecretResolver):
    """Reads variables that the operator sets where workers run; runtimes never see them."""

    scheme: ClassVar[str] = "env"

    def read(self, tenant: str, path: str) -> str:
        """Return the value of this tenant's variable."""
        if len(path) > _NAME_MAX or not NAME.fullmatch(path):
            raise self.unavailable(
                path, f"use 1 to {_NAME_MAX} of A-Z and 0-9, with single underscores between"
            )
        if not SCHEMA_NAME.match(tenant):
            raise self.unavailable(path, f"{tenant!r} is not the name of a tenant")
        name = f"ISOLANE_SECRET_{tenant.upper()}__{path}"
        value = os.environ.get(name)
        if value is None:
            raise self.unavailable(path, f"the operator has not set {name} where workers run")
        return value
