"""The sweep of folders whose worker died, or could not remove them.

Timing: some milliseconds where there is nothing; else as long as it is given.
Model: sync, one thread at a time; several workers may sweep at once.
Guarantee: at-least-once; a held folder is never touched, and one that stays does not delay the others.
Failure: a folder that stays is logged once, and tried again, later and later.
"""

import contextlib
import itertools
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec

from resources.runtimes.emptying import UNFINISHED
from resources.runtimes.faults import reported
from resources.runtimes.folder import PREFIX, lock_unheld, remove_held
from resources.runtimes.runner_processes import end_strays

SWEEP_SECONDS = 10.0
FOLDER_SECONDS = 5.0  # of these for one folder
_AT_ONCE = 50  # folders whose processes are searched by one walk
_PAUSE_SECONDS = 20.0  # after the first failed try; twice as long after the next
_LONGEST_PAUSE_SECONDS = 3600.0
logger = logging.getLogger(__name__)
P = ParamSpec("P")


@dataclass(kw_only=True)
class Kept:
    """A folder that could not be removed."""

    path: Path
    reason: str
    tries: int = 0
    tried_at: float = 0.0
    due_at: float = 0.0

    def tried(self, reason: str) -> None:
        """Record a failed try. One that only took too long continues with the next sweep."""
        now = time.monotonic()
        pause = min(_PAUSE_SECONDS * 2**self.tries, _LONGEST_PAUSE_SECONDS)
        self.reason, self.tried_at, self.tries = reason, now, self.tries + 1
        self.due_at = now if reason == UNFINISHED else now + pause

    @property
    def changed_at(self) -> datetime:
        """The time of its last change."""
        return datetime.fromtimestamp(self.path.lstat().st_mtime, UTC)


class FolderSweep:
    """Removes folders repeatedly, and remembers those that stay."""

    def __init__(self, *, log: bool = True) -> None:
        self._log = log  # a warning, when one stays for the first time
        self._kept: dict[Path, Kept] = {}

    def turn(self, seconds: float = SWEEP_SECONDS) -> list[Kept]:
        """Try the due folders for so many seconds; return all that stay. Never raises."""
        with reported("folders not swept"):
            self._turn(time.monotonic() + seconds)
        return list(self._kept.values())

    def _turn(self, until: float) -> None:
        found = set(own_folders())
        self._kept = {path: kept for path, kept in self._kept.items() if path in found}
        # Those that were not tried yet first: a slow one must not hold up the others.
        due = iter(sorted((path for path in found if self._is_due(path)), key=self._tried_at))
        while time.monotonic() < until and (paths := list(itertools.islice(due, _AT_ONCE))):
            for path, reason in remove_unheld(paths, until=until).items():
                self._note(path, reason)

    def _is_due(self, path: Path) -> bool:
        return path not in self._kept or time.monotonic() >= self._kept[path].due_at

    def _tried_at(self, path: Path) -> float:
        return self._kept[path].tried_at if path in self._kept else 0.0

    def _note(self, path: Path, reason: str) -> None:
        kept = self._kept.pop(path, None)
        if not reason:
            return
        if kept is None and self._log:
            extra = {"event": "FOLDER_STAYS"}
            logger.warning("folder %a cannot be removed yet: %s", str(path), reason, extra=extra)
        kept = self._kept[path] = kept or Kept(path=path, reason=reason)
        kept.tried(reason)


def remove_unheld(paths: Iterable[Path], *, until: float) -> dict[Path, str]:
    """Remove folders that no living process holds, and end processes in them; return why each stays, empty if gone.

    Held folders, and those without time left, are not in the result.
    """
    reasons: dict[Path, str] = {}
    held: dict[Path, int] = {}
    with contextlib.ExitStack() as locks:

        def lock(path: Path) -> str:
            if (taken := lock_unheld(path)) is not None:
                locks.callback(os.close, taken)
                held[path] = taken
            return ""

        for path in paths:
            if reason := _reason(path, lock, path):
                reasons[path] = reason
        if held:
            # A worker that was killed while it ended a runner left it stopped: it cannot see its stream end.
            with reported("what dead workers have started was not ended"):
                end_strays(*held)
        for path, taken in held.items():
            seconds = min(until - time.monotonic(), FOLDER_SECONDS)
            if seconds > 0:
                reasons[path] = _reason(path, remove_held, path, taken, seconds)
    return reasons


def _reason(path: Path, work: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return why the work on a folder failed: its own reason, or the exception that it raised."""
    try:
        return work(*args, **kwargs)
    except OSError as error:
        return error.strerror or type(error).__name__
    except Exception as error:
        logger.exception("%a not removed", str(path), extra={"event": "TEARDOWN_FAULT"})
        return type(error).__name__


def own_folders() -> list[Path]:
    """Return this user's folders: those of others are never touched."""
    return [path for path, user in _folders() if user == os.geteuid()]


def foreign_folders() -> list[Path]:
    """Return the folders of other users: only their own workers remove them."""
    return [path for path, user in _folders() if user != os.geteuid()]


def _folders() -> list[tuple[Path, int]]:
    found = []
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                    found.append((Path(entry.path), entry.stat(follow_symlinks=False).st_uid))
    return found
