"""Secrets in the worker's environment: `env:NAME` is ISOLANE_SECRET_<TENANT>__<NAME>."""

import os
import re
from typing import ClassVar

from resources.resolvers.base import SecretResolver
from tenants.names import SCHEMA_NAME

# Without two underscores in a row, and without one at either end: a tenant's name may have both, and then only
# the last pair of them parts tenant and name.
NAME = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")
_NAME_MAX = 100


class EnvironmentResolver(SecretResolver):
    """The operator sets the variable where workers run; runtimes never see it."""

    scheme: ClassVar[str] = "env"

    def read(self, tenant: str, path: str) -> str:
        """The variable of this tenant."""
        if len(path) > _NAME_MAX or not NAME.fullmatch(path):
            raise self.unavailable(
                path, f"use 1 to {_NAME_MAX} of A-Z and 0-9, with single underscores between"
            )
        if not SCHEMA_NAME.match(tenant):
            raise self.unavailable(path, f"{tenant!r} is no tenant's name")
        name = f"ISOLANE_SECRET_{tenant.upper()}__{path}"
        value = os.environ.get(name)
        if value is None:
            raise self.unavailable(path, f"the operator has not set {name} where workers run")
        return value
