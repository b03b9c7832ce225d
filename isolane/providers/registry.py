"""The providers of a runtime by their type: the built-in ones, and those of installed packages."""

import contextlib
import functools
import importlib
import importlib.metadata
import inspect
from typing import Any

from isolane.providers.base import Provider

ENTRY_POINTS = "isolane.providers"  # name: the type; value: the class
_BUILT_IN = {
    "cache": "isolane.providers.cache:Cache",
    "database": "isolane.providers.database:Database",
    "http_api": "isolane.providers.http_api:HttpApi",
    "model": "isolane.providers.model:Model",
}


@functools.cache
def provider_of(type: str) -> Provider[Any]:  # noqa: A002 - its name everywhere
    """Return the provider of this type; LookupError names the known ones."""
    if type in _BUILT_IN:
        module, _, name = _BUILT_IN[type].partition(":")
        return _made(type, getattr(importlib.import_module(module), name))
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=type):
        return _made(type, entry.load())
    raise LookupError(f"resource type {type[:64]!r} is unknown; known are: {', '.join(types())}")


def types() -> list[str]:
    """Return the names of all types, without importing them."""
    plugins = importlib.metadata.entry_points(group=ENTRY_POINTS).names
    return sorted(_BUILT_IN.keys() | plugins)


def import_drivers(type: str) -> None:  # noqa: A002 - its name everywhere
    """Import the drivers of a built-in type, which take long, as far as they are installed."""
    for module in provider_of(type).drivers if type in _BUILT_IN else ():
        with contextlib.suppress(ImportError):  # a runner without it refuses such a resource
            importlib.import_module(module)


def _made(type: str, cls: Any) -> Provider[Any]:  # noqa: A002
    if not (inspect.isclass(cls) and issubclass(cls, Provider)):
        raise LookupError(f"resource type {type}: {cls!r} is not a subclass of Provider")
    return cls()
