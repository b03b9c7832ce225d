"""Suggestions for an unknown name. Pure."""

import difflib
from collections.abc import Collection

from executions.blueprints.errors import SHOWN

MAX_LISTED = 20  # names; more would not help


def instead_of(name: str, known: Collection[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, else all known ones."""
    if near := difflib.get_close_matches(name[:SHOWN], known, n=1):
        return f"did you mean {near[0]!r}?"
    listed = sorted(known)[:MAX_LISTED]
    more = ", …" if len(known) > MAX_LISTED else ""
    return f"known are {', '.join(listed) or 'none'}{more}."
