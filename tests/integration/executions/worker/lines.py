"""Log lines as an operator sees them, and whose they are."""

import json
import logging
from typing import Any

from foundation.logs import JsonFormatter
from resources.placement import Placement
from tenants.scope import TenantRef

LIBRARY = "some.library"
Line = dict[str, Any]


class Lines(logging.Handler):
    """Formats in the thread that writes, as a stream does."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(JsonFormatter())
        self.seen: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(json.loads(self.format(record)))

    def of(self, logger: str, message: str = "") -> list[Line]:
        return [
            line
            for line in self.seen
            if line["logger"] == logger and line["message"].startswith(message)
        ]


def say_something(*_: object, **__: object) -> None:
    """As a library would, which knows nothing of runs."""
    logging.getLogger(LIBRARY).warning("something")


def are_of(lines: list[Line], tenant: TenantRef, placement: Placement) -> bool:
    whose = {(line.get("execution_id"), line.get("tenant_id"), line.get("epoch")) for line in lines}
    return whose == {(str(placement.execution_id), tenant.schema, placement.epoch)}
