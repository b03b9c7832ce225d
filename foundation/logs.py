"""Log lines as JSON; lines of a run carry `execution_id` and `tenant_id`, those of a request its `request_id`."""

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
)  # json.dumps would make one for each line

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
    """Have every line that this thread writes carry these fields, whoever writes it, until `unbind`."""
    _bound.set(fields)


def unbind() -> None:
    """Lines are nobody's again."""
    _bound.set(_NOTHING)


@contextmanager
def bound(fields: Mapping[str, object]) -> Iterator[None]:
    """The same for as long as this lasts."""
    token = _bound.set(fields)
    try:
        yield
    finally:
        _bound.reset(token)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the fixed fields, the known extras and, for operators, the trace."""
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
    # Django writes its last line about a request when the middleware has answered, but gives the request along.
    request = getattr(record, "request", None)
    return str(getattr(request, "request_id", "")) or current_request_id()


MAX_CAUSES = 200
Cause = tuple[str, str, str]
_OTHERS: Cause = ("", "", "")


class OneASecond(logging.Filter):
    """Lets one line of a cause through per second; the next one says how many were not written."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._since: dict[Cause, float] = {}
        self._suppressed: dict[Cause, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the line is written; called before it is rendered."""
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
        """The cause itself, or one for all others while there are too many."""
        if cause in self._since or len(self._since) < MAX_CAUSES:
            return cause
        recent = {one: since for one, since in self._since.items() if now - since < 1}
        if len(recent) >= MAX_CAUSES:
            return _OTHERS
        self._since = recent
        self._suppressed = {one: n for one, n in self._suppressed.items() if one in recent}
        return cause


def cause_of(record: logging.LogRecord) -> Cause:
    """Who writes, what it is about (the event, or the text before values are put in), and the kind of error."""
    about = getattr(record, "event", None) or str(record.msg).partition("\n")[0]
    error = record.exc_info[0] if record.exc_info else None
    return record.name, str(about), error.__name__ if error else ""


def log_to_stderr() -> None:
    """Write errors as JSON, for a process without Django, whose settings would say so."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


def limit_lines() -> None:
    """Write one line of a cause per second, for processes whose lines anybody can cause: web and Flower.

    Not for workers: there each line is about another run, and is wanted.
    """
    for handler in logging.getLogger().handlers:
        handler.addFilter(OneASecond())
