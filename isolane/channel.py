"""One end of a pair of pipes between a worker and a runner.

Pipes, not a socket: a socket carries descriptors, whose end would then be the worker's work and may take for ever
(SO_LINGER), and it belongs to a network namespace, which would be the machine's.

Timing: no call waits.
Model: one thread reads, one writes.
Guarantee: only bytes pass.
Failure: BlockingIOError if it would have to wait, ConnectionError if the other end is gone.
"""

import contextlib
import fcntl
import os
from collections.abc import Sequence


class Channel:
    """The descriptors to read from and to write to; closed with it."""

    def __init__(self, reading: int, writing: int) -> None:
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self.reading = reading
        self.writing = writing
        self._is_closed = False

    def receive(self, size: int) -> bytes:
        """Return some bytes; none at the end."""
        return os.read(self.reading, size)

    def receive_into(self, room: memoryview) -> int:
        """Receive some bytes, and return how many; none at the end."""
        return os.readv(self.reading, [room])

    def send(self, data: bytes | memoryview) -> int:
        """Send as much as there is room for, and return how much."""
        return os.write(self.writing, data)

    def send_pieces(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Send as much of these as there is room for, one behind the other, and return how much."""
        return os.writev(self.writing, pieces)

    def widen(self, size: int) -> None:
        """Let so many bytes be under way in each direction, if the kernel has them to spare."""
        for descriptor in (self.reading, self.writing):
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)

    def close(self) -> None:
        """Close it. Repeatable."""
        if self._is_closed:
            return
        self._is_closed = True
        for descriptor in (self.reading, self.writing):
            with contextlib.suppress(OSError):  # a step has closed it
                os.close(descriptor)

    def __enter__(self) -> "Channel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def channel_pair() -> tuple[Channel, Channel]:
    """Make two ends; programs that are started do not inherit them."""
    first, second = os.pipe()
    try:
        third, fourth = os.pipe()
    except OSError:
        os.close(first)
        os.close(second)
        raise
    return Channel(first, fourth), Channel(third, second)
