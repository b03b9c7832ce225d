"""Which issuer a type of resource has."""

from functools import cache
from importlib.metadata import entry_points

from resources.issuers.base import Issuer
from resources.issuers.cache import CacheIssuer
from resources.issuers.database import DatabaseIssuer

ENTRY_POINTS = "isolane.issuers"
_BUILT_IN: dict[str, type[Issuer]] = {"cache": CacheIssuer, "database": DatabaseIssuer}


@cache
def issuer_of(resource_type: str) -> Issuer | None:
    """The issuer of a type; None if nothing of it outlives a socket. A plugin cannot replace one of ours."""
    if resource_type in _BUILT_IN:
        return _BUILT_IN[resource_type]()
    for entry in entry_points(group=ENTRY_POINTS, name=resource_type):
        found = entry.load()
        if not (isinstance(found, type) and issubclass(found, Issuer)):
            raise TypeError(f"{ENTRY_POINTS}: {entry.name} = {entry.value} is no Issuer")
        return found()
    return None
