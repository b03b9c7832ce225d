"""References to secrets, and the resolver that each scheme has."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from foundation.errors import InvalidInput
from isolane.names import RESOURCE
from resources.resolvers.base import SecretResolver
from resources.resolvers.environment import EnvironmentResolver
from resources.resolvers.file import FileResolver

ENTRY_POINTS = "isolane.secret_resolvers"
STORED = ""  # the scheme of secrets that the platform keeps
_BUILT_IN: dict[str, type[SecretResolver]] = {"env": EnvironmentResolver, "file": FileResolver}
_SCHEME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PATH = re.compile(r"[!-~]{1,255}")  # printable, without spaces


class UnknownScheme(InvalidInput):
    """A reference has a scheme without a resolver."""

    code = "unknown_secret_scheme"


@dataclass(frozen=True)
class Reference:
    """A reference to a secret: a stored one by its name, another by scheme and path."""

    scheme: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.path}" if self.scheme else self.path


def parse(reference: str) -> Reference:
    """Parse `name` or `scheme:path`. Pure."""
    scheme, colon, path = reference.partition(":")
    if not colon and RESOURCE.fullmatch(reference):
        return Reference(STORED, reference)
    if colon and _SCHEME.fullmatch(scheme) and _PATH.fullmatch(path):
        return Reference(scheme, path)
    raise InvalidInput(
        f"secret {reference[:100]!r} is not a reference; use the name of a stored secret (a-z, 0-9, '_', '-'), "
        "or scheme:path such as 'env:BILLING_PASSWORD' or 'file:billing-password'.",
        field="secrets",
    )


@cache
def resolver_of(scheme: str) -> SecretResolver:
    """Return the resolver of a scheme; a plugin cannot replace a built-in one."""
    if scheme in _BUILT_IN:
        return _BUILT_IN[scheme]()
    plugins = entry_points(group=ENTRY_POINTS)
    for entry in plugins.select(name=scheme):
        found = entry.load()
        if not (isinstance(found, type) and issubclass(found, SecretResolver)):
            raise TypeError(f"{ENTRY_POINTS}: {entry.name} = {entry.value} is not a SecretResolver")
        return found()
    known = ", ".join(sorted({*_BUILT_IN, *plugins.names}))
    raise UnknownScheme(
        f"secret scheme {scheme[:40]!r} is unknown; use one of {known}.", field="secrets"
    )
