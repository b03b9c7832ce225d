"""Connections and refusals of one placement that are still to be written as events of its run.

Timing: background-worker; the gate's thread adds, threads of the worker take.
Model: sync, no I/O; every method is safe from any thread.
Guarantee: at-least-once; each record is given to writers until one does not fail, or counted.
Failure: none of its own; records whose writer failed come first again, and memory is bounded.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from isolane.text import storable
from resources.gate.record import ConnectionReason, ConnectionRecord

# Of one placement; the others are counted. Each for itself, so that neither hides the other.
MAX_CONNECTIONS = 200
MAX_REFUSALS = 100
MAX_SAME_REFUSALS = 3  # with the same host, port and reason
HOST_MAX = 255  # characters


@dataclass(frozen=True, slots=True)
class OmittedConnections:
    """The numbers of connections and refusals that were counted and not kept, and their bytes together."""

    closed: int
    refused: int
    sent: int = 0
    received: int = 0


@dataclass(frozen=True, slots=True)
class NumberedRecord:
    """A record with its number in the placement, from 1 without a gap: no record is written twice."""

    number: int
    record: ConnectionRecord | OmittedConnections


_Refusal = tuple[str, int, ConnectionReason]


class ConnectionLog:
    """Keeps the first records of a placement and counts the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._unwritten: list[NumberedRecord] = []
        self._numbers = 0
        self._kept: Counter[bool] = Counter()  # by `is_refusal`
        self._omitted: Counter[bool] = Counter()  # likewise
        self._omitted_bytes = (0, 0)  # sent, received
        self._same_refusals: Counter[_Refusal] = Counter()  # of those that were kept
        self._last_faults: dict[bool, ConnectionRecord] = {}  # by `is_told`; kept or not

    def add(self, record: ConnectionRecord) -> None:
        """Keep a record, or count it if there are too many; its host is text of untrusted code."""
        record = replace(record, host=_shown_host(record.host))
        with self._lock:
            if record.is_fault:
                self._last_faults[record.is_told] = record
            if not self._has_room_for(record):
                self._omit(record)
                return
            self._kept[record.is_refusal] += 1
            if record.is_refusal:
                self._same_refusals[_refusal(record)] += 1
            self._number(record)

    def fault_since(self, moment: datetime, *, untold: bool) -> ConnectionRecord | None:
        """Return the last refusal or fault since then; if `untold`, one whose reason its program was not told."""
        with self._lock:
            told = None if untold else self._last_faults.get(True)
            found = (self._last_faults.get(False), told)
        since = [record for record in found if record is not None and record.at >= moment]
        return max(since, key=lambda record: record.at, default=None)

    @contextmanager
    def taken(self, *, are_last: bool = False) -> Iterator[Sequence[NumberedRecord]]:
        """Give the records that are not written yet to one writer at a time; if it fails they come again.

        The last ones tell how many were omitted.
        """
        with self._writing:
            records = self._take(are_last=are_last)
            try:
                yield records
            except BaseException:
                self._give_back(records)
                raise

    def _take(self, *, are_last: bool) -> list[NumberedRecord]:
        with self._lock:
            if are_last and self._omitted:
                counts = (self._omitted[False], self._omitted[True])
                self._number(OmittedConnections(*counts, *self._omitted_bytes))
                self._omitted.clear()
                self._omitted_bytes = (0, 0)
            records, self._unwritten = self._unwritten, []
        return records

    def _give_back(self, records: Sequence[NumberedRecord]) -> None:
        with self._lock:
            self._unwritten[:0] = records

    def _has_room_for(self, record: ConnectionRecord) -> bool:
        if not record.is_refusal:
            return self._kept[False] < MAX_CONNECTIONS
        # Asked without a default that would be kept: a refusal that is not kept must take no memory.
        is_repeated = self._same_refusals.get(_refusal(record), 0) >= MAX_SAME_REFUSALS
        return self._kept[True] < MAX_REFUSALS and not is_repeated

    def _omit(self, record: ConnectionRecord) -> None:
        self._omitted[record.is_refusal] += 1
        if not record.is_refusal:
            sent, received = self._omitted_bytes
            self._omitted_bytes = (sent + record.sent, received + record.received)

    def _number(self, record: ConnectionRecord | OmittedConnections) -> None:
        self._numbers += 1
        self._unwritten.append(NumberedRecord(self._numbers, record))


def _refusal(record: ConnectionRecord) -> _Refusal:
    return record.host, record.port, record.reason


def _shown_host(host: str) -> str:
    """Bound a host, and replace the signs with which it could look like more than a name."""
    kept = storable(host, HOST_MAX)
    return "".join(c if c.isprintable() and not c.isspace() else "\ufffd" for c in kept)
