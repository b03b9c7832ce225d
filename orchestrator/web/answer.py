"""One answer of the application; its start shows if it is a stream.

Timing: request-time.
Model: async, in the task of the request.
Guarantee: a stream without room is answered 503, and the rest of its answer is ignored.
Failure: errors bubble to uvicorn, which logs them and answers 500.
"""

from collections.abc import Callable
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from orchestrator.web import refusals
from orchestrator.web.problem import ProblemAnswer, as_answer

STREAM_TYPE = b"text/event-stream"


class ApplicationAnswer(RequestResponseCycle):
    """uvicorn's request and response; asks before it begins a stream and buffers `most` bytes for its caller."""

    def __init__(self, *, on_stream: Callable[[], bool], most: int, **given: Any) -> None:
        super().__init__(**given)
        self._on_stream = on_stream
        self._most = most
        self._refused = False
        self.is_stream = False

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start" and is_stream(message.get("headers", ())):
            self.is_stream = self._on_stream()
            if not self.is_stream:
                self._refused = True
                await self._send_refusal(as_answer(refusals.too_many_streams()))
        if self.transport.get_write_buffer_size() > self._most:
            self.flow.pause_writing()
        if not self._refused:
            await super().send(message)

    async def _send_refusal(self, answer: ProblemAnswer) -> None:
        await super().send(
            {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        )
        await super().send({"type": "http.response.body", "body": answer.body})


def is_stream(headers: Any) -> bool:
    """Return True for an answer without an end."""
    return any(
        name.lower() == b"content-type" and value.lower().startswith(STREAM_TYPE)
        for name, value in headers
    )
