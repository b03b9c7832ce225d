"""Checks of a message's frame before Celery gets it, and one log line a second about those that fail.

Any client with write access to the broker can put anything on a lane. Kombu and Celery trust the frame of a message,
and an exception there ends the worker.

Timing: for each message, some microseconds.
Model: sync; `fault` is pure.
Guarantee: kombu can read a message without a fault.
Failure: a message with a fault is dropped; it was a wake-up at best, and those are sent again from the row.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

LOG_EVERY_SECONDS = 1.0
CONTENT = ("application/json", "utf-8")
logger = logging.getLogger(__name__)


def fault(message: Any) -> str:
    """Return the fault in the frame of a message; empty if there is none. The task reads the body."""
    if not isinstance(message, dict):
        return "it is not an object"
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
    if headers.get(
        "compression"
    ):  # nothing here compresses, and a small body could unpack to a huge one
        return "its body is compressed"
    return ""


class Dropped:
    """Counts the dropped messages of this process and logs them, at most once a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlogged = 0
        self._logged_at = float("-inf")

    def __call__(self, queue: str, reason: str) -> None:
        """Count a message; nothing of its content is logged."""
        self._unlogged += 1
        now = self._clock()
        if now - self._logged_at < LOG_EVERY_SECONDS:
            return
        logger.error(
            "%d unreadable message(s) dropped, the last one from %s: %s",
            self._unlogged,
            queue,
            reason,
            extra={"event": "MESSAGE_DROPPED"},
        )
        self._unlogged, self._logged_at = 0, now
