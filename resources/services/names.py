"""The names of definitions and secrets. Pure."""

from foundation.errors import InvalidInput
from isolane.names import RESOURCE

_SHOWN = 80  # characters of a wrong name that its refusal repeats


def is_name(name: object) -> bool:
    """Say whether this can be the name of a definition or secret; if not, no query is needed."""
    return isinstance(name, str) and RESOURCE.fullmatch(name) is not None


def check_name(name: object, *, field: str = "name") -> str:
    """Return the name if it is valid; the error describes a valid one."""
    if isinstance(name, str) and is_name(name):
        return name
    shown = repr(name)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    raise InvalidInput(
        f"{field} {shown} is not usable: 1 to 63 of a-z, 0-9, '_' and '-', beginning with a letter.",
        field=field,
    )
