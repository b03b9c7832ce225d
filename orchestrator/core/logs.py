"""Log lines as JSON; lines of a run carry `execution_id` and `tenant_id`, those of a request its `request_id`."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

from orchestrator.core.request_ids import current_request_id

_NOTHING: Mapping[str, object] = MappingProxyType({})
_bound: ContextVar[Mapping[str, object]] = ContextVar("bound", default=_NOTHING)

_ENCODER = json.JSONEncoder(
    default=str, ensure_ascii=False
)  # json.dumps would make one for each line

EXTRA_FIELDS = (
    "event",
    "actor",
    "execution_id",
    "tenant_id",
    "step",
    "epoch",
    "worker",
    "resource",
    "resource_type",
    "resource_id",
    "request_id",
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
