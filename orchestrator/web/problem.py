"""A problem as bytes, for answers that no Django view gives."""

import json
from dataclasses import dataclass

from orchestrator.core.errors import IsolaneError
from orchestrator.core.problems import CONTENT_TYPE, headers_of, problem
from orchestrator.core.request_ids import HEADER, usable_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Status, header and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def as_answer(error: IsolaneError, request_id: str = "") -> Answer:
    """The error in the shape of every refusal of web; the connection closes after it."""
    body = json.dumps(problem(error)).encode()
    fields = {
        "Content-Type": CONTENT_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        HEADER: usable_id(request_id),
        **headers_of(error),
    }
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    return Answer(status=error.http_status, headers=headers, body=body)
