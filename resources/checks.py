"""Django system checks of the setting RUNTIMES."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from resources.runtimes.base import RuntimeBackend
from tenants.isolation import Isolation

UNKNOWN_LEVEL = "isolane.E007"
NOT_A_BACKEND = "isolane.E008"
WRONG_OPTIONS = "isolane.E009"


@register
def check_runtimes(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Check each level and its backend, without starting one."""
    if not settings.RUNTIMES:
        return [Error("RUNTIMES is empty: no run could be placed.", id=UNKNOWN_LEVEL)]
    return [
        message for level, entry in settings.RUNTIMES.items() for message in _check(level, entry)
    ]


def _check(level: str, entry: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if level not in Isolation.values:
        known = ", ".join(Isolation.values)
        yield Error(f"RUNTIMES has a level {level!r}; known are {known}.", id=UNKNOWN_LEVEL)
    name = entry.get("BACKEND", "")
    try:
        backend = import_string(name)
    except ImportError as error:
        yield Error(
            f"RUNTIMES[{level!r}]['BACKEND']: {name!r} cannot be imported: {error}",
            id=NOT_A_BACKEND,
        )
        return
    if not (isinstance(backend, type) and issubclass(backend, RuntimeBackend)):
        yield Error(
            f"RUNTIMES[{level!r}]['BACKEND']: {name!r} is not a RuntimeBackend.", id=NOT_A_BACKEND
        )
        return
    try:
        inspect.signature(backend).bind(level=level, **entry.get("OPTIONS", {}))
    except TypeError as error:
        yield Error(f"RUNTIMES[{level!r}]['OPTIONS']: {error}.", id=WRONG_OPTIONS)
