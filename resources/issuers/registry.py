"""The issuers by resource type: the built-in ones, and those of installed packages."""

from functools import cache
from importlib.metadata import entry_points

from resources.issuers.base import Issuer
from resources.issuers.cache import CacheIssuer
from resources.issuers.database import DatabaseIssuer

ENTRY_POINTS = "isolane.issuers"
_BUILT_IN: dict[str, type[Issuer]] = {"cache": CacheIssuer, "database": DatabaseIssuer}


@cache
def issuer_of(resource_type: str) -> Issuer | None:
    """Return the issuer of a type; None if it needs no credentials. A plugin cannot replace a built-in one."""
    if resource_type in _BUILT_IN:
        return _BUILT_IN[resource_type]()
    for entry in entry_points(group=ENTRY_POINTS, name=resource_type):
        found = entry.load()
        if not (isinstance(found, type) and issubclass(found, Issuer)):
            raise TypeError(f"{ENTRY_POINTS}: {entry.name} = {entry.value} is not an Issuer")
        return found()
    return None
