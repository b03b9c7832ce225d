"""h11 with patterns whose time grows with the bytes. It is imported from here alone.

Its own try each way to divide a row of blanks: a line of 60 kB held the interpreter for eight seconds, web's or a
worker's. They are replaced in h11 itself, so that libraries that use it have these, too.
"""

import re

import h11  # noqa: TID251 - for all others
from h11 import _abnf, _readers  # noqa: TID251 - likewise

__all__ = ["h11"]


def _possessive(pattern: str, part: str, replacement: str) -> re.Pattern[bytes]:
    """Return the pattern with a part that gives nothing back."""
    if pattern.count(part) != 1:
        raise RuntimeError(f"this version of h11 has another pattern: {pattern!r}")
    return re.compile(pattern.replace(part, replacement).encode())


_readers.header_field_re = _possessive(_abnf.header_field, r":[ \t]*(", r":[ \t]*+(")
_readers.chunk_header_re = _possessive(_abnf.chunk_header, ";.*", r";[^\r\n]*+")
