"""The output of an attempt on its way to the database, while its step runs.

Timing: background-worker; a thread writes new output once a second, the checkpoint the rest.
Model: sync.
Guarantee: at-least-once until the checkpoint, in order; lost with its placement.
Failure: output that could not be written is tried again a second later.
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
from isolane.protocol import Progress
from resources.placement import Placement


class AttemptLog:
    """The output of one attempt that is not written yet."""

    def __init__(
        self, placement: Placement, path: str, attempt: int, *, masker: Masker, withheld: bool
    ) -> None:
        self.output = AttemptOutput(now=timezone.now)
        self._placement = placement
        self._path = path
        self._attempt = attempt
        self._masker = masker
        # The values that a step marks as sensitive are known at its end only: until then nothing of it is shown.
        self.withheld = withheld
        self._lock = threading.Lock()
        self._closed = False

    def flush(self) -> None:
        """Write the output that has come since the last time; the lock keeps its order."""
        with self._lock:
            if self.withheld or self._closed:
                return
            lines, progress = self.output.take_lines(), self.output.take_progress()
            if not lines and progress is None:
                return
            try:
                self._write(lines, progress)
            except DatabaseError:
                self.output.give_back(lines)
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
        """End the attempt's output and return the rest, which goes with its checkpoint."""
        with self._lock:
            self._closed = True
        return self.output
