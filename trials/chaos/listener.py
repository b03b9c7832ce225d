"""Receive the task events of the workers, as Flower does, and count the tasks that succeeded.

Timing: as events arrive.
Model: sync, in a thread of its own.
Guarantee: at-most-once; events that are sent while the broker is down are lost.
Failure: a lost connection is opened again, until the listener is stopped.
"""

import ast
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from kombu.exceptions import OperationalError

from orchestrator.celery import app
from trials.chaos.rows import Link

RECONNECT_SECONDS = 0.2


class TaskEventListener(threading.Thread):
    """Receive task events until stopped."""

    def __init__(self) -> None:
        super().__init__(name="task-event-listener", daemon=True)
        self._links: dict[str, Link] = {}  # by task
        self._succeeded: set[str] = set()
        self._stopping = threading.Event()
        self._receiver: Any = None
        self.counts: Counter[str] = Counter()
        self.connected = 0
        self.failed: Counter[str] = Counter()  # links, by exception

    def run(self) -> None:
        """Connect, listen, and connect again when the connection is lost."""
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
                    self._stopping.wait(RECONNECT_SECONDS)

    def stop(self) -> None:
        """Stop within about a second."""
        self._stopping.set()
        if self._receiver is not None:
            self._receiver.should_stop = True
        self.join(10)

    def successes(self) -> Mapping[Link, int]:
        """Return the number of tasks that succeeded, by link."""
        found: defaultdict[Link, int] = defaultdict(int)
        for task in self._succeeded:
            if link := self._links.get(task):
                found[link] += 1
        return found

    def _listen(self, connection: Any) -> None:
        handlers = {
            "task-received": self._on_received,
            "task-succeeded": self._on_succeeded,
            "task-failed": self._on_failed,
        }
        self._receiver = app.events.Receiver(connection, handlers=handlers)
        self._receiver.should_stop = self._stopping.is_set()
        self.connected += 1
        self._receiver.capture(limit=None, timeout=None, wakeup=False)

    def _on_received(self, event: dict[str, Any]) -> None:
        self.counts["received"] += 1
        # By arguments, since the name is the one that Flower shows. Other tasks have other arguments.
        if link := link_of(str(event.get("args", ""))):
            self._links[event["uuid"]] = link

    def _on_succeeded(self, event: dict[str, Any]) -> None:
        self.counts["succeeded"] += 1
        self._succeeded.add(event["uuid"])

    def _on_failed(self, event: dict[str, Any]) -> None:
        self.counts["failed"] += 1
        self.failed[str(event.get("exception", ""))] += 1


def link_of(arguments: str) -> Link | None:
    """Parse execution, epoch and path from the arguments in an event. Pure."""
    try:
        _tenant, execution, epoch, path = ast.literal_eval(arguments)
    except (ValueError, SyntaxError, TypeError):
        return None
    return str(execution), int(epoch), str(path)
