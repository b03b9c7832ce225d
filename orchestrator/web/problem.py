"""Answers that do not come from a Django view, as bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpResponse

from foundation.errors import IsolaneError
from foundation.problems import CONTENT_TYPE, headers_of, problem
from foundation.request_ids import HEADER, usable_id


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemAnswer:
    """Status, header and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def as_answer(error: IsolaneError, request_id: str = "") -> ProblemAnswer:
    """Return the error as web's usual refusal; the connection closes after it."""
    body = json.dumps(problem(error)).encode()
    fields = {
        "Content-Type": CONTENT_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        HEADER: usable_id(request_id),
        **headers_of(error),
    }
    return ProblemAnswer(status=error.http_status, headers=_encoded(fields), body=body)


def of_response(response: HttpResponse) -> ProblemAnswer:
    """Return a response of Django as the last one of its connection."""
    own = {"Content-Length": str(len(response.content)), "Connection": "close"}
    fields = {**dict(response.items()), **own}
    return ProblemAnswer(
        status=response.status_code, headers=_encoded(fields), body=response.content
    )


def _encoded(fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()]
