"""What becomes of handles and need not be known at once: that one was handed on, or closed.

Timing: told with the next answer, or when somebody asks for it; adding never waits. Model: any thread adds; the
session's main thread answers while its reader may tell what has waited for long. Guarantee: told once, in the order in
which it happened. Failure: what a killed process has not told is lost; its handles went with it.
"""

import threading
from collections import deque

from isolane.protocol import Resource
from isolane.stream import Stream

NOT_URGENT = frozenset({"reused", "disposed"})


class DeferredFrames:
    """Of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames: deque[Resource] = deque()
        self._lock = (
            threading.Lock()
        )  # from taking them until they are in their place before others

    def add(self, frame: Resource) -> None:
        """Have it told; safe from finalisers, too."""
        self._frames.append(frame)

    def with_result(self, step: str) -> dict[str, str]:
        """What a result can tell by itself: handles that the step was handed, by their ids. All else goes before it."""
        with self._lock:
            frames = self._take()
            if all(frame.event == "reused" and frame.step == step for frame in frames):
                return {frame.resource_id: frame.name for frame in frames}
            self._hold(frames)
        return {}

    def hold(self) -> None:
        """Have all of it go before the next frame."""
        with self._lock:
            self._hold(self._take())

    def tell(self) -> None:
        """Tell it now, unless the peer does not listen."""
        self.hold()
        self._stream.flush()

    def _take(self) -> list[Resource]:
        return [self._frames.popleft() for _ in range(len(self._frames))]

    def _hold(self, frames: list[Resource]) -> None:
        for frame in frames:
            self._stream.hold(frame)
