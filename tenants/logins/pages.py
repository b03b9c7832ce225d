"""The page for a person who tried to sign in too often."""

from functools import lru_cache

from django.http import HttpResponse
from django.template.loader import render_to_string

from foundation.errors import TooManyAttempts


def too_many_attempts(path: str, error: TooManyAttempts) -> HttpResponse:
    """Return a page with a link back, and the status and header of the problem that a program gets."""
    headers = {"Retry-After": str(error.retry_after_s)}
    return HttpResponse(_page(path, error.detail), status=error.http_status, headers=headers)


@lru_cache(maxsize=1_000)
def _page(path: str, detail: str) -> str:
    shown = {"path": path, "detail": detail}
    return render_to_string("registration/too_many_attempts.html", shown)
