"""JSON in the one form that PostgreSQL gives back. Pure.

A value reads the same before and after it was stored: also in memory the names of objects are sorted, and a number
written as an integer is an integer. Otherwise a step that runs again after a lost worker would get another
idempotency key than before.
"""

import json
from decimal import Decimal
from operator import itemgetter
from typing import Any

_BY_NAME = itemgetter(0)


def loads(text: str | bytes) -> Any:
    """Read JSON that was written here or by the database."""
    return json.loads(text, parse_float=_number, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(sorted(dict(pairs).items(), key=_BY_NAME))


def _number(text: str) -> int | float:
    """Read a number as PostgreSQL returns it: 1e+23 comes back with all its digits and no point; a zero has no sign."""
    exact = Decimal(text)
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= 0:
        return int(exact)
    return float(text) or 0.0
