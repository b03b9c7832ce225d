"""What a person sees who tried to sign in too often."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.core.errors import TooManyAttempts


def too_many_attempts(request: HttpRequest, error: TooManyAttempts) -> HttpResponse:
    """A page with the same status and header as the problem that a program is sent."""
    page = render(
        request,
        "registration/too_many_attempts.html",
        {"detail": error.detail},
        status=error.http_status,
    )
    page["Retry-After"] = str(error.retry_after)
    return page
