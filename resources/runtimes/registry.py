"""The backends by level, from the setting RUNTIMES."""

import importlib
from collections.abc import Mapping
from typing import Any

from resources.runtimes.base import RuntimeBackend


def build_backends(config: Mapping[str, Mapping[str, Any]]) -> dict[str, RuntimeBackend]:
    """Build a backend per level from `{level: {"BACKEND": dotted path, "OPTIONS": {...}}}`."""
    return {level: _build(level, entry) for level, entry in config.items()}


def _build(level: str, entry: Mapping[str, Any]) -> RuntimeBackend:
    module, _, name = entry["BACKEND"].rpartition(".")
    backend = getattr(importlib.import_module(module), name)
    if not (isinstance(backend, type) and issubclass(backend, RuntimeBackend)):
        raise TypeError(f"RUNTIMES[{level!r}]: {entry['BACKEND']} is not a RuntimeBackend")
    try:
        return backend(level=level, **entry.get("OPTIONS", {}))
    except TypeError as error:
        raise TypeError(f"RUNTIMES[{level!r}]['OPTIONS']: {error}") from error
