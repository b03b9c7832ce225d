"""Telling the server whose request it was, once that is proven: then callers can take turns before anybody is asked."""

from django.http import HttpRequest

STATE = "isolane.caller"


def tell_caller(request: HttpRequest, caller: str) -> None:
    """Say it to the server, if it listens: `orchestrator.web` does."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault("state", {})[STATE] = caller
