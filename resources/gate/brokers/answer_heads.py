"""Bounds on the heads of answers, found in the bytes before they are parsed: parsing takes time by lines and blocks.

Timing: microseconds for each piece of bytes.
Model: sync, no I/O.
Guarantee: no head is parsed that has more than LINES_MAX lines or BLOCK_MAX bytes; bodies are not looked at.
Failure: none of its own; `accept` says no.
"""

import re
from typing import Protocol

from resources.gate.brokers.http_headers import LINES_MAX

BLOCK_MAX = 16 * 1024  # bytes of a block of headers in HTTP/2, compressed
_HEAD_END = re.compile(rb"\n\r?\n")
_STATUS = slice(9, 10)  # the first digit, in HTTP/1.1 100 Continue
_FRAME_HEAD = 9
_HEADERS, _PROMISE, _CONTINUATION = 1, 5, 9
_OF_BLOCKS = frozenset({_HEADERS, _PROMISE, _CONTINUATION})
_END_HEADERS = 4


class AnswerHeads(Protocol):
    """Looks at the bytes from a remote server."""

    frames: int  # that have begun; in HTTP/1.1 none

    def accept(self, data: bytes) -> bool:
        """Say whether the heads in these bytes and those before are short enough."""


class PlainHeads:
    """The heads of one answer in HTTP/1.1: interim ones, and its own."""

    frames = 0

    def __init__(self) -> None:
        self._head = bytearray()
        self._is_over = False

    def accept(self, data: bytes) -> bool:
        """Count the lines of each head up to that of the answer itself."""
        searched = max(len(self._head) - 2, 0)
        self._head += b"" if self._is_over else data
        while not self._is_over and (end := _HEAD_END.search(self._head, searched)):
            if self._head.count(b"\n", 0, end.start()) >= LINES_MAX:
                return False
            self._is_over = self._head[_STATUS] != b"1"
            del self._head[: end.end()]
            searched = 0
        if self._is_over:
            self._head.clear()
        return self._head.count(b"\n") <= LINES_MAX


class FramedHeads:
    """The blocks of headers of a connection in HTTP/2, each in one frame and those that continue it."""

    def __init__(self) -> None:
        self.frames = 0
        self._head = b""  # of a frame, as far as it has come
        self._frame_left = 0  # bytes of a frame that are still to come
        self._block = 0  # bytes of the block that has begun

    def accept(self, data: bytes) -> bool:
        """Add up the frames of each block."""
        at = 0
        while at < len(data):
            skipped = min(self._frame_left, len(data) - at)
            self._frame_left -= skipped
            at += skipped
            missing = _FRAME_HEAD - len(self._head)
            self._head += data[at : at + missing]
            at += missing
            if len(self._head) == _FRAME_HEAD and not self._is_short(self._head):
                return False
        return True

    def _is_short(self, head: bytes) -> bool:
        """Begin a frame; say whether its block is short enough."""
        self.frames += 1
        self._head = b""
        self._frame_left = int.from_bytes(head[:3], "big")
        if head[3] not in _OF_BLOCKS:
            return True
        self._block += self._frame_left
        is_short = self._block <= BLOCK_MAX
        if head[4] & _END_HEADERS:
            self._block = 0
        return is_short
