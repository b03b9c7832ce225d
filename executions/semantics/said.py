"""What a step said and cost while it ran. Pure: the caller brings the clock."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from executions.semantics.records import Line
from isolane.protocol import Cost, Log, Progress

MAX_COST_KINDS = 20  # of one attempt


@dataclass(kw_only=True, slots=True)
class Said:
    """Of one attempt; safe from any thread."""

    now: Callable[[], datetime]
    costs: dict[str, Decimal] = field(default_factory=dict)
    progress: Progress | None = None  # the newest that nobody has taken yet
    refused: str = ""  # why the attempt fails whatever it returns
    _lines: list[Line] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, frame: Log | Progress | Cost) -> None:
        """Keep what a frame says."""
        with self._lock:
            match frame:
                case Log():
                    line = Line(at=self.now(), level=frame.level, message=frame.message)
                    self._lines.append(line)
                case Progress():
                    self.progress = frame
                case Cost():
                    self._cost(frame)

    def take_lines(self) -> Sequence[Line]:
        """The lines that nobody has taken yet."""
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def give_back(self, lines: Sequence[Line]) -> None:
        """They could not be written; they come first again."""
        with self._lock:
            self._lines[:0] = lines

    def take_progress(self) -> Progress | None:
        """The newest progress, if nobody has taken it yet."""
        with self._lock:
            newest, self.progress = self.progress, None
        return newest

    def _cost(self, cost: Cost) -> None:
        if cost.kind not in self.costs and len(self.costs) >= MAX_COST_KINDS:
            self.refused = f"The step reported more than {MAX_COST_KINDS} kinds of cost."
            return
        # repr is the shortest text that means this number: 0.1 stays 0.1.
        amount = Decimal(repr(cost.amount))
        self.costs[cost.kind] = self.costs.get(cost.kind, Decimal()) + amount
