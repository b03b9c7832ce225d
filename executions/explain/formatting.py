"""Formatting of times, durations and quoted messages in sentences for people. Pure."""

from datetime import UTC, datetime

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


def sentence(text: str) -> str:
    """Return a text on one line, with a full stop unless it ends with a mark."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."
