"""The health probe, answered before host names, TLS and the database matter."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PATH = "/healthz"


class HealthMiddleware:
    """Answer the probe: this process is up; it says nothing about the servers behind it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe; pass on everything else."""
        if request.path == PATH:
            return HttpResponse("ok\n", content_type="text/plain")
        return self._get_response(request)
