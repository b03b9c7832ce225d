"""The pace at which the frames of a tenant's runs are read. Pure.

Reading a frame is the worker's processor time, however few bytes it has; what a run sends for the sake of its frames
has to wait, with the other runs of its tenant.
"""

_FREE_BYTES = 1024  # a frame of so many is charged nothing
_KEPT = 5_000  # frames that may come at once
_PER_SECOND = 10_000
_DIAL = 20  # what a new connection costs beside its frame


class FramePace:
    """The frames that the runs of a tenant may still send at once."""

    def __init__(self, now: float) -> None:
        self._left = float(_KEPT)
        self._at = now

    def charge_dial(self) -> None:
        """Charge a new connection."""
        self._left -= _DIAL

    def pause(self, frames: int, size: int, now: float) -> float:
        """Charge frames of so many bytes together; return the seconds for which no more are read."""
        self._left = min(self._left + (now - self._at) * _PER_SECOND, _KEPT)
        self._at = now
        self._left -= max(frames - size / _FREE_BYTES, 0.0)
        return max(-self._left / _PER_SECOND, 0.0)
