"""Report the authenticated caller of a request to the server, which lets callers take turns."""

from django.http import HttpRequest

STATE = "isolane.caller"


def tell_caller(request: HttpRequest, caller: str) -> None:
    """Report the caller, if the server reads it; `orchestrator.web` does."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault("state", {})[STATE] = caller
