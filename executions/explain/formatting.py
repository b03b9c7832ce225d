"""Formatting of times, durations, sizes and quoted messages in sentences for people. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def moment(at: datetime) -> str:
    """Return a time to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """Return a duration in the unit that fits: 120 ms, 1.4 s, 2.5 min, 3 h, 7 days."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{round(seconds, 1):g} s"
    for unit, size, limit in (("min", _MINUTE, _HOUR), ("h", _HOUR, 2 * _DAY)):
        if seconds < limit:
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{round(seconds / _DAY, 1):g} days"


def size(count: float) -> str:
    """Return a number of bytes in the unit that fits: 1 byte, 512 bytes, 14.3 kB, 2 GB."""
    if count < 1000:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    for unit, bytes_ in (("kB", 1e3), ("MB", 1e6)):
        if count < bytes_ * 1000:
            return f"{round(count / bytes_, 1):g} {unit}"
    return f"{round(count / 1e9, 1):g} GB"


def number_in(data: Mapping[str, Any], name: str) -> float | None:
    """Return a number from an event's data, if it is there and is one."""
    found = data.get(name)
    return found if isinstance(found, int | float) else None


def sentence(text: str) -> str:
    """Return a text on one line, with a full stop unless it ends with a mark."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."
