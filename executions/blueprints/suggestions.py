"""What somebody who wrote an unknown name may have meant. Pure."""

import difflib
from collections.abc import Collection

from executions.blueprints.errors import SHOWN

MAX_LISTED = 20  # names; more help nobody


def instead_of(name: str, known: Collection[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, else those that there are."""
    if near := difflib.get_close_matches(name[:SHOWN], known, n=1):
        return f"did you mean {near[0]!r}?"
    listed = sorted(known)[:MAX_LISTED]
    more = ", …" if len(known) > MAX_LISTED else ""
    return f"known are {', '.join(listed) or 'none'}{more}."
