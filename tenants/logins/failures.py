"""Records of failed logins: at most one log line a second, and few entries in the audit trail.

Timing: request-time.
Model: sync.
Guarantee: at-most-once; failures on purpose add a bounded number of entries a minute.
Failure: bubble; an entry that cannot be written is an error.
"""

import logging
import threading
import time
from collections.abc import Callable

from tenants.scope import platform_scope
from tenants.services.audit import record

MAX_ACCOUNT_LENGTH = 150  # the length of a user name
ENTRIES_PER_MINUTE = 60  # of one process
MINUTE = 60.0
logger = logging.getLogger(__name__)


class PerMinute:
    """Lets a number of entries through each minute, and counts the others."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._ends = float("-inf")
        self._let = 0
        self._held = 0

    def take(self) -> int | None:
        """Return the number of entries held back before this one, or None if this one is held back."""
        with self._lock:
            now = self._clock()
            if now >= self._ends:
                self._ends, self._let = now + MINUTE, 0
            if self._let >= self._most:
                self._held += 1
                return None
            self._let += 1
            held, self._held = self._held, 0
            return held


_ENTRIES = PerMinute(ENTRIES_PER_MINUTE)


def record_failure(*, what: str, account: str, address: str, failures: int) -> None:
    """Log a failure; audit the first of its subject, the second, the fourth and so on."""
    account = printable(account)
    logger.warning(
        "wrong %s, failure %d",
        what,
        failures,
        extra={"event": "LOGIN_FAILED", "account": account, "address": address},
    )
    if failures & (failures - 1):
        return
    if (unrecorded := _ENTRIES.take()) is None:
        return
    with platform_scope():
        record(
            action="login.failed",
            actor=f"address:{address}",
            subject=account,
            what=what,
            failures=failures,
            unrecorded=unrecorded,
        )


def printable(account: str) -> str:
    """Return a typed name in a form that can be stored: short, without control characters."""
    shown = "".join(sign if sign.isprintable() else "�" for sign in account[:MAX_ACCOUNT_LENGTH])
    return shown.encode("utf-8", "replace").decode()
