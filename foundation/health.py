"""The answer to a probe, before host names, TLS or the database matter."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PATH = "/healthz"


class HealthMiddleware:
    """Says that this process answers, and nothing about the servers behind it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe, pass everything else on."""
        if request.path == PATH:
            return HttpResponse("ok\n", content_type="text/plain")
        return self._get_response(request)
