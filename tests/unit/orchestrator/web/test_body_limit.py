"""The application itself takes no more of a body than the limit, under whatever server."""

import asyncio
import json
from typing import Any

from django.conf import settings

from orchestrator.web.body_limit import limit_body


def call(*parts: bytes) -> tuple[int, bytes, list[bytes]]:
    """Status and body of the answer, and what the application was given."""
    given: list[bytes] = []
    said: list[Any] = []
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    coming.append({"type": "http.request", "body": b"", "more_body": False})

    async def application(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            given.append(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})

    async def receive() -> Any:
        return coming.pop(0)

    async def send(message: Any) -> None:
        said.append(message)

    scope: Any = {"type": "http"}
    asyncio.run(limit_body(application, 10)(scope, receive, send))
    return said[0]["status"], said[1]["body"], given


def test_within_the_limit() -> None:
    assert call(b"12345", b"67890")[:2] == (200, b"fine")


def test_beyond_it() -> None:
    status, body, given = call(b"12345", b"678901", b"never read")
    assert (status, given) == (413, [b"12345"])
    problem = json.loads(body)
    assert problem["code"] == "too_large"
    assert str(settings.DATA_UPLOAD_MAX_MEMORY_SIZE) in problem["detail"]
