"""Frames about handles that need not be sent at once: a handle was reused, or closed.

Timing: sent with the next answer, or by `flush`; adding never waits.
Model: any thread adds; the main thread answers, and the reader may flush frames that have waited long.
Guarantee: sent once, in the order in which they were added.
Failure: frames that a killed process has not sent are lost; its handles ended with it.
"""

import threading
from collections import deque

from isolane.protocol import Resource
from isolane.stream import Stream

DEFERRABLE = frozenset({"reused", "disposed"})  # events


class DeferredFrames:
    """The deferred frames of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames: deque[Resource] = deque()
        self._lock = threading.Lock()  # from taking frames until the stream holds them

    def add(self, frame: Resource) -> None:
        """Defer a frame; safe from finalisers, too."""
        self._frames.append(frame)

    def take_reused(self, step: str) -> dict[str, str]:
        """Return the handles that the step reused, by id, for its result to carry; any other frame is held."""
        with self._lock:
            frames = self._take()
            if all(frame.event == "reused" and frame.step == step for frame in frames):
                return {frame.resource_id: frame.name for frame in frames}
            self._hold(frames)
        return {}

    def hold(self) -> None:
        """Let the stream send all of them before its next frame."""
        with self._lock:
            self._hold(self._take())

    def flush(self) -> None:
        """Send all of them now, unless the peer does not read."""
        self.hold()
        self._stream.flush()

    def _take(self) -> list[Resource]:
        return [self._frames.popleft() for _ in range(len(self._frames))]

    def _hold(self, frames: list[Resource]) -> None:
        for frame in frames:
            self._stream.hold(frame)
