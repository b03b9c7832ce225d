"""Log lines as JSON; lines of a run have `execution_id` and `tenant_id`, lines of a request `request_id`."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from threading import Lock
from types import MappingProxyType

from foundation.request_ids import current_request_id

_NOTHING: Mapping[str, object] = MappingProxyType({})
_bound: ContextVar[Mapping[str, object]] = ContextVar("bound", default=_NOTHING)

_ENCODER = json.JSONEncoder(
    default=str, ensure_ascii=False
)  # json.dumps would create one for each line

EXTRA_FIELDS = (
    "event",
    "actor",
    "account",
    "address",
    "execution_id",
    "tenant_id",
    "step",
    "epoch",
    "worker",
    "resource",
    "resource_type",
    "resource_id",
    "request_id",
    "suppressed",
)


def bind(fields: Mapping[str, object]) -> None:
    """Add these fields to every line that this thread writes, until `unbind`."""
    _bound.set(fields)


def unbind() -> None:
    """Remove the fields of `bind`."""
    _bound.set(_NOTHING)


@contextmanager
def bound(fields: Mapping[str, object]) -> Iterator[None]:
    """Add these fields to every line that this thread writes within."""
    token = _bound.set(fields)
    try:
        yield
    finally:
        _bound.reset(token)


class JsonFormatter(logging.Formatter):
    """Format a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the fixed fields, the known extras and the trace."""
        line: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := _request_id(record):
            line["request_id"] = request_id
        of_record, of_thread = vars(record), _bound.get()
        for key in EXTRA_FIELDS:
            value = of_record[key] if key in of_record else of_thread.get(key)
            if value is not None:
                line[key] = value
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line)


def _request_id(record: logging.LogRecord) -> str:
    # Django writes its last line of a request after the middleware, but passes the request along.
    request = getattr(record, "request", None)
    return str(getattr(request, "request_id", "")) or current_request_id()


MAX_CAUSES = 200
Cause = tuple[str, str, str]
_OTHERS: Cause = ("", "", "")


class OneASecond(logging.Filter):
    """Let one line per second and cause through; the next one has the number of suppressed lines."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._since: dict[Cause, float] = {}
        self._suppressed: dict[Cause, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line is to be written; called before it is rendered."""
        now = self._clock()
        with self._lock:
            cause = self._known(cause_of(record), now)
            if now - self._since.get(cause, now - 1) < 1:
                self._suppressed[cause] = self._suppressed.get(cause, 0) + 1
                return False
            self._since[cause] = now
            if suppressed := self._suppressed.pop(cause, 0):
                record.suppressed = suppressed
        return True

    def _known(self, cause: Cause, now: float) -> Cause:
        """Return the cause, or a common one while there are too many."""
        if cause in self._since or len(self._since) < MAX_CAUSES:
            return cause
        recent = {one: since for one, since in self._since.items() if now - since < 1}
        if len(recent) >= MAX_CAUSES:
            return _OTHERS
        self._since = recent
        self._suppressed = {one: n for one, n in self._suppressed.items() if one in recent}
        return cause


def cause_of(record: logging.LogRecord) -> Cause:
    """Return logger, event (or the text before formatting) and the type of the error."""
    about = getattr(record, "event", None) or str(record.msg).partition("\n")[0]
    error = record.exc_info[0] if record.exc_info else None
    return record.name, str(about), error.__name__ if error else ""


def log_to_stderr() -> None:
    """Write errors as JSON, in a process without Django's settings."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


def limit_lines() -> None:
    """Write one line per second and cause, in processes whose lines any caller can cause: web and Flower.

    Not in workers: there each line is about a different run.
    """
    for handler in logging.getLogger().handlers:
        handler.addFilter(OneASecond())
