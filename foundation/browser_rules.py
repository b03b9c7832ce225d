"""Headers for browsers and caches: a Content-Security-Policy, and no copies.

Timing: request-time.
Model: sync.
Guarantee: deterministic; every response has a policy, unless a middleware outside of this one answers.
Failure: none of its own.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

# For responses to programs, which are never pages.
NO_PAGE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Own files only: no inline scripts or styles, nothing from another host. Swagger UI has images as data: URLs.
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class BrowserRulesMiddleware:
    """Add the headers; static files set their own caching, everything else is not stored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response with the headers."""
        response = self._get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        response["Content-Security-Policy"] = PAGE if is_page else NO_PAGE
        if "Cache-Control" not in response.headers:
            response["Cache-Control"] = "no-store"
            patch_vary_headers(response, ["Authorization", "Cookie"])
        return response
