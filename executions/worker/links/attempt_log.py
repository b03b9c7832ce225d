"""What steps say, on its way to the database while they run.

Timing: background-worker; a thread of its own writes once a second what has come meanwhile, the rest goes with the
checkpoint. Model: sync. Guarantee: at-least-once until the checkpoint, in order; lost with their placement.
Failure: what could not be written is tried again a second later.
"""

import threading
from collections.abc import Sequence

from django.db import Error as DatabaseError
from django.utils import timezone

from executions.placement.run_scope import run_scope
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.attempt_record import LogLine
from executions.semantics.masking import Masker
from executions.transitions.append_output import append_output
from executions.transitions.fence import Placement
from isolane.protocol import Progress


class AttemptLog:
    """What one attempt has said, and not yet been written."""

    def __init__(
        self, placement: Placement, path: str, attempt: int, *, masker: Masker, held: bool
    ) -> None:
        self.said = AttemptOutput(now=timezone.now)
        self._placement = placement
        self._path = path
        self._attempt = attempt
        self._masker = masker
        # What a step will mark as sensitive is known at its end only: until then nothing of it is shown.
        self._held = held
        self._lock = threading.Lock()
        self._closed = False

    def flush(self) -> None:
        """Write what has come since; the order of lines is kept by the lock."""
        with self._lock:
            if self._held or self._closed:
                return
            lines, progress = self.said.take_lines(), self.said.take_progress()
            if not lines and progress is None:
                return
            try:
                self._write(lines, progress)
            except DatabaseError:
                self.said.give_back(lines)
                raise

    def _write(self, lines: Sequence[LogLine], progress: Progress | None) -> None:
        with run_scope(self._placement.tenant_id):
            append_output(
                self._placement,
                self._path,
                self._attempt,
                lines=[line.masked_by(self._masker) for line in lines],
                fraction=progress.fraction if progress else None,
                text=self._masker.mask(progress.message) if progress else "",
            )

    def close(self) -> AttemptOutput:
        """The attempt has ended: what is left goes with its checkpoint."""
        with self._lock:
            self._closed = True
        return self.said
