"""Durations as people write them: `500ms`, `30s`, `5m`, `1h`, `7d`. Pure."""

import re
from dataclasses import dataclass

from executions.blueprints.errors import InvalidBlueprint, shown

PATTERN = "^[0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h|d)$"
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The shortest and the longest allowed duration, in seconds and in words."""

    least: float
    most: float
    words: str


STEP = Span(least=0.01, most=24 * 3600.0, words="between 10 ms and 24 h")
RUN = Span(least=1.0, most=7 * 86400.0, words="between 1 s and 7 d")


def seconds(text: str, span: Span, where: str) -> float:
    """Return the seconds, or refuse a text that is not a duration or outside the span."""
    match = _DURATION.fullmatch(text)
    found = float(match[1]) * _UNIT_SECONDS[match[2]] if match else 0.0
    if not span.least <= found <= span.most:
        raise InvalidBlueprint(
            f"{where} is {shown(repr(text))}; write a duration such as 500ms, 30s, 5m or 1h,"
            f" {span.words}.",
            field=where,
        )
    return found
