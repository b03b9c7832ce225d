"""h11 with bounded work: few lines at once, and time that grows with the bytes. It is imported from here alone.

It parses all lines of a head at once, and all behind a chunked body: thirty thousand hold the interpreter for ten
milliseconds. More than LINES_MAX are refused before that. Its own patterns try each way to divide a row of blanks: a
line of 60 kB held it for eight seconds, web's or a worker's. Both are replaced in h11 itself, so that libraries that
use it have these, too.
"""

import re

import h11  # noqa: TID251 - for all others
from h11 import _abnf, _readers  # noqa: TID251 - likewise
from h11._receivebuffer import ReceiveBuffer, blank_line_regex  # noqa: TID251 - likewise
from h11._util import LocalProtocolError  # noqa: TID251 - likewise

__all__ = ["LINES_MAX", "h11"]

LINES_MAX = 256  # headers of a message, or behind its body
_extract_lines = ReceiveBuffer.maybe_extract_lines


def _possessive(pattern: str, part: str, replacement: str) -> re.Pattern[bytes]:
    """Return the pattern with a part that gives nothing back."""
    if pattern.count(part) != 1:
        raise RuntimeError(f"this version of h11 has another pattern: {pattern!r}")
    return re.compile(pattern.replace(part, replacement).encode())


def _extract_few_lines(self: ReceiveBuffer) -> list[bytearray] | None:
    """Extract what comes before a blank line, unless it has too many lines already."""
    data = self._data
    if data.startswith((b"\n", b"\r\n")):
        return _extract_lines(self)
    end = blank_line_regex.search(data, self._multiple_lines_search)
    lines = data.count(b"\n", 0, end.start() if end else len(data))
    if lines > LINES_MAX + (end is None):  # the blank line may still come
        raise LocalProtocolError(f"more than {LINES_MAX} lines", error_status_hint=431)
    return _extract_lines(self)


_readers.header_field_re = _possessive(_abnf.header_field, r":[ \t]*(", r":[ \t]*+(")
_readers.chunk_header_re = _possessive(_abnf.chunk_header, ";.*", r";[^\r\n]*+")
ReceiveBuffer.maybe_extract_lines = _extract_few_lines  # type: ignore[method-assign]  # h11 has no option for it
