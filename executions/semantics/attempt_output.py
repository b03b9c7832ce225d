"""Log lines, progress and costs of a running attempt. Pure: the caller brings the clock."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from executions.semantics.attempt_record import LogLine
from isolane.protocol import Cost, Log, Progress
from isolane.text import LINE_MAX

MAX_COST_KINDS = 20  # of one attempt
MAX_PROGRESS = 1000  # reports of one attempt that are written
MAX_PROGRESS_BYTES = 256 * 1024  # of all their messages
PROGRESS_DROPPED = "further progress of this step is dropped"
_THINNED = 100  # the pause after a report is a hundredth of the time since the first, so they last for days


@dataclass(kw_only=True, slots=True)
class AttemptOutput:
    """The output of one attempt; safe to use from any thread."""

    now: Callable[[], datetime]
    costs: dict[str, Decimal] = field(default_factory=dict)
    progress: Progress | None = None  # the newest report that was not taken yet
    refused: str = ""  # why the attempt fails whatever it returns
    _lines: list[LogLine] = field(default_factory=list)
    _truncated: set[str] = field(
        default_factory=set
    )  # levels whose last line goes on in the next frame
    _last: datetime | None = None  # the time of the newest line
    _reports: int = 0  # reports of progress that were taken
    _report_bytes: int = 0
    _first_report: datetime | None = None
    _next_report: datetime | None = None  # when one may be taken again
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, frame: Log | Progress | Cost) -> None:
        """Keep the content of a frame."""
        with self._lock:
            match frame:
                case Log():
                    self._lines.append(self._line(frame))
                case Progress() if not self._is_progress_spent:
                    self.progress = frame
                case Cost():
                    self._cost(frame)

    def take_lines(self) -> Sequence[LogLine]:
        """Return the lines that were not taken yet."""
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def give_back(self, lines: Sequence[LogLine]) -> None:
        """Return lines that could not be written; they come first again."""
        with self._lock:
            self._lines[:0] = lines

    def take_progress(self) -> Progress | None:
        """Return the newest progress unless it was taken, or too many reports were taken lately or in all."""
        with self._lock:
            now = self.now()
            if self.progress is None or (self._next_report and now < self._next_report):
                return None
            newest, self.progress = self.progress, None
            self._reports += 1
            self._report_bytes += len(newest.message.encode())
            if self._is_progress_spent:
                self._lines.append(self._own_line(PROGRESS_DROPPED))
                return None
            self._first_report = self._first_report or now
            self._next_report = now + (now - self._first_report) / _THINNED
            return newest

    @property
    def _is_progress_spent(self) -> bool:
        return self._reports > MAX_PROGRESS or self._report_bytes > MAX_PROGRESS_BYTES

    def _own_line(self, message: str) -> LogLine:
        """A line that the platform itself adds."""
        return LogLine(at=self._later(), level="warning", message=message)

    def _line(self, log: Log) -> LogLine:
        """Return a line; a runner sends an overlong one in pieces, and each of its streams has a level of its own."""
        continued, truncated = log.level in self._truncated, len(log.message) >= LINE_MAX
        (self._truncated.add if truncated else self._truncated.discard)(log.level)
        return LogLine(
            at=self._later(),
            level=log.level,
            message=log.message,
            continued=continued,
            truncated=truncated,
        )

    def _later(self) -> datetime:
        """Return a time after the line before, even if the clock was set back: lines are identified by their times."""
        now = self.now()
        if self._last is not None and now <= self._last:
            now = self._last + timedelta.resolution
        self._last = now
        return now

    def _cost(self, cost: Cost) -> None:
        if cost.kind not in self.costs and len(self.costs) >= MAX_COST_KINDS:
            self.refused = f"The step reported more than {MAX_COST_KINDS} kinds of cost."
            return
        # repr is the shortest text that means this number: 0.1 stays 0.1.
        amount = Decimal(repr(cost.amount))
        self.costs[cost.kind] = self.costs.get(cost.kind, Decimal()) + amount
