"""Hears what the workers tell of their tasks, as Flower does, and counts those that succeeded.

Timing: as they come. Model: sync, in a thread of its own. Guarantee: at-most-once; what is told while the broker is
away is not heard. Failure: a lost connection is made anew until it is stopped.
"""

import ast
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from kombu.exceptions import OperationalError

from orchestrator.celery import app
from trials.chaos.rows import Link

AGAIN_SECONDS = 0.2


class Listener(threading.Thread):
    """Listens until it is stopped."""

    def __init__(self) -> None:
        super().__init__(name="listener", daemon=True)
        self._links: dict[str, Link] = {}  # by task
        self._succeeded: set[str] = set()
        self._stopping = threading.Event()
        self._receiver: Any = None
        self.heard: Counter[str] = Counter()
        self.connected = 0
        self.failed: Counter[str] = Counter()  # links, by what they raised

    def run(self) -> None:
        """Connect, listen, and connect again."""
        while not self._stopping.is_set():
            with app.connection_for_read() as connection:
                lost: tuple[type[BaseException], ...] = (
                    *connection.connection_errors,
                    *connection.channel_errors,
                    OperationalError,
                )
                try:
                    self._listen(connection)
                except lost:
                    self._stopping.wait(AGAIN_SECONDS)

    def stop(self) -> None:
        """Stop within a second or so."""
        self._stopping.set()
        if self._receiver is not None:
            self._receiver.should_stop = True
        self.join(10)

    def successes(self) -> Mapping[Link, int]:
        """How many tasks have succeeded, by their link."""
        found: defaultdict[Link, int] = defaultdict(int)
        for task in self._succeeded:
            if link := self._links.get(task):
                found[link] += 1
        return found

    def _listen(self, connection: Any) -> None:
        handlers = {
            "task-received": self._received,
            "task-succeeded": self._ended_well,
            "task-failed": self._ended_badly,
        }
        self._receiver = app.events.Receiver(connection, handlers=handlers)
        self._receiver.should_stop = self._stopping.is_set()
        self.connected += 1
        self._receiver.capture(limit=None, timeout=None, wakeup=False)

    def _received(self, event: dict[str, Any]) -> None:
        self.heard["received"] += 1
        # The name is the one that Flower shows; what is no link of a chain has other arguments.
        if link := link_of(str(event.get("args", ""))):
            self._links[event["uuid"]] = link

    def _ended_well(self, event: dict[str, Any]) -> None:
        self.heard["succeeded"] += 1
        self._succeeded.add(event["uuid"])

    def _ended_badly(self, event: dict[str, Any]) -> None:
        self.heard["failed"] += 1
        self.failed[str(event.get("exception", ""))] += 1


def link_of(arguments: str) -> Link | None:
    """Execution, epoch and path from the arguments as they are shown. Pure."""
    try:
        _tenant, execution, epoch, path = ast.literal_eval(arguments)
    except (ValueError, SyntaxError, TypeError):
        return None
    return str(execution), int(epoch), str(path)
