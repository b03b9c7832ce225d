"""The limit of a body inside the application, for servers that know none: `isolane web` refuses before.

Timing: request-time. Model: async. Guarantee: no more than the limit of a body reaches the application. Failure: a body
beyond it is answered 413; other errors bubble.
"""

from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
    Scope,
)

from orchestrator.core.problems import too_large
from orchestrator.web.problem import as_answer


class _TooMuch(Exception):
    pass


def limit_body(application: ASGI3Application, most: int) -> ASGI3Application:
    """The application, which is given at most so many bytes of a body."""

    async def limited(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        received = 0

        async def counted() -> ASGIReceiveEvent:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message["body"])
                if received > most:
                    raise _TooMuch
            return message

        try:
            await application(scope, counted, send)
        except _TooMuch:
            answer = as_answer(too_large())
            start = HTTPResponseStartEvent(
                type="http.response.start",
                status=answer.status,
                headers=answer.headers,
                trailers=False,
            )
            await send(start)
            body = HTTPResponseBodyEvent(
                type="http.response.body", body=answer.body, more_body=False
            )
            await send(body)

    return limited
