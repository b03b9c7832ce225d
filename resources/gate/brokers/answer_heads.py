"""A bound on the blocks of headers in HTTP/2, found in the bytes before they are parsed. In HTTP/1.1 h11 has one.

Timing: microseconds for each piece of bytes.
Model: sync, no I/O.
Guarantee: no block is parsed that has more than BLOCK_MAX bytes; bodies are not looked at.
Failure: none of its own; `accept` says no.
"""

BLOCK_MAX = 16 * 1024  # bytes of a block of headers, compressed
_FRAME_HEAD = 9
_HEADERS, _PROMISE, _CONTINUATION = 1, 5, 9
_OF_BLOCKS = frozenset({_HEADERS, _PROMISE, _CONTINUATION})
_END_HEADERS = 4


class FramedHeads:
    """The blocks of headers of a connection in HTTP/2, each in one frame and those that continue it."""

    def __init__(self) -> None:
        self.frames = 0  # that have begun
        self._head = b""  # of a frame, as far as it has come
        self.frame_left = 0  # bytes of a frame that are still to come
        self._block = 0  # bytes of the block that has begun

    def accept(self, data: bytes) -> bool:
        """Add up the frames of each block."""
        at = 0
        while at < len(data):
            skipped = min(self.frame_left, len(data) - at)
            self.frame_left -= skipped
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
        self.frame_left = int.from_bytes(head[:3], "big")
        if head[3] not in _OF_BLOCKS:
            return True
        self._block += self.frame_left
        is_short = self._block <= BLOCK_MAX
        if head[4] & _END_HEADERS:
            self._block = 0
        return is_short
