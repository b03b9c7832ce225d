"""What a message must look like before Celery is given it, and one line a second about those that do not.

Whoever may write to the broker can put anything on a lane. Kombu and Celery take the frame of a message for granted,
and an exception there ends the worker.

Timing: for each message, some microseconds. Model: sync; `fault` is pure. Guarantee: what has no fault can be read by
kombu. Failure: what has one is dropped; it was a wake-up at best, and those are sent again from the row.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

TOLD_EVERY_SECONDS = 1.0
CONTENT = ("application/json", "utf-8")
logger = logging.getLogger(__name__)


def fault(message: Any) -> str:
    """What is wrong with the frame of a message; empty if nothing is. Its body is read where the task runs."""
    if not isinstance(message, dict):
        return "it is no object"
    properties, headers = message.get("properties"), message.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict):
        return "it has no properties or no headers"
    if not isinstance(properties.get("delivery_tag"), str):
        return "it has no delivery tag"
    if not isinstance(properties.get("delivery_info"), dict):
        return "it has no delivery info"
    if not isinstance(message.get("body"), str) or properties.get("body_encoding") != "base64":
        return "its body is not base64"
    if (message.get("content-type"), message.get("content-encoding")) != CONTENT:
        return "its body is not JSON in UTF-8"
    if headers.get("compression"):  # nobody here compresses, and little can become much
        return "its body is compressed"
    return ""


class Dropped:
    """Counts dropped messages of this process and tells of them, at most once a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._untold = 0
        self._told_at = float("-inf")

    def __call__(self, queue: str, reason: str) -> None:
        """Count one; nothing of its content is shown."""
        self._untold += 1
        now = self._clock()
        if now - self._told_at < TOLD_EVERY_SECONDS:
            return
        logger.error(
            "%d unreadable message(s) dropped, the last one from %s: %s",
            self._untold,
            queue,
            reason,
            extra={"event": "MESSAGE_DROPPED"},
        )
        self._untold, self._told_at = 0, now
