"""JSON from elsewhere, without invalid numbers: NaN, Infinity, and 1e999, which no float can hold."""

import json
import math


def refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, for `parse_constant`."""
    raise ValueError(f"{name} is not a number")


def finite(text: str) -> float:
    """Return a finite number, for `parse_float`; Python would read one that is too large as infinite."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


# Created once: json.loads would create one for each text.
DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)
