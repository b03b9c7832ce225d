"""Django as an ASGI application that answers each request in one thread.

For views that are not async, Django's own handler switches between the event loop and two threads several times, and
starts these threads for each request. While other connections keep the event loop busy, each switch is a wait.

Timing: request-time.
Model: async; the views are sync, in a fixed number of threads.
Guarantee: at-most-once; nothing of a request stays in its thread, context variables included.
Failure: Django renders errors of views; the server logs others and answers 500.
"""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http.response import HttpResponse, HttpResponseBase
from django.urls import set_script_prefix


class ThreadedHandler(ASGIHandler):
    """Serves sync views; endless answers are not supported."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="request")

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's signature
        """Build the sync chain, though Django asks for the async one."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        answer = contextvars.copy_context().run
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self._threads, answer, self._answer, scope, body)
        await self.send_response(response, send)

    def _answer(self, scope: Any, body: IO[bytes]) -> HttpResponseBase:
        """Answer in this thread; its database connection goes back to the pool at the end."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        with body:
            request, refused = self.create_request(scope, body)
            response: Any = refused if request is None else self.get_response(request)
            try:
                return whole(response)
            finally:
                response.close()


def whole(response: Any) -> HttpResponseBase:
    """Return the answer with all of its content: a file that is sent in parts is read here, not in the event loop."""
    if not response.streaming:
        return response  # type: ignore[no-any-return]  # Django's stubs do not know of `streaming`
    read = HttpResponse(response.getvalue(), status=response.status_code)
    read.headers, read.cookies = response.headers, response.cookies
    return read
