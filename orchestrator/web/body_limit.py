"""The limit of a body inside the application, for servers without one: `isolane web` refuses earlier.

Timing: request-time.
Model: async.
Guarantee: no more than the limit of a body reaches the application.
Failure: a larger body is answered 413; other errors bubble.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from foundation.problems import too_large
from orchestrator.web.problem import as_answer

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class _TooMuch(Exception):
    pass


def limit_body(application: Application, most: int) -> Application:
    """Return the application, limited to so many bytes of a body."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise _TooMuch
            return message

        try:
            await application(scope, counted, send)
        except _TooMuch:
            answer = as_answer(too_large())
            start = {"type": "http.response.start", "status": answer.status}
            await send({**start, "headers": answer.headers})
            await send({"type": "http.response.body", "body": answer.body})

    return limited
