"""What a person sees who tried to sign in too often."""

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from orchestrator.core.errors import TooManyAttempts


def too_many_attempts(request: HttpRequest, error: TooManyAttempts) -> HttpResponse:
    """A page with the same status and header as the problem that a program is sent."""
    content = render_to_string(
        "registration/too_many_attempts.html", {"detail": error.detail, "path": request.path}
    )
    headers = {"Retry-After": str(error.retry_after)}
    return HttpResponse(content, status=error.http_status, headers=headers)
