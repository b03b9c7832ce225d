"""Refusals of a blueprint's text, as problems: where the text does not fit, for programs such as editors."""

from typing import Any

from rest_framework.response import Response
from rest_framework.views import APIView

from executions.blueprints.errors import BlueprintError
from foundation.problems import MAX_DETAIL_LENGTH, echo


class PlacedProblems(APIView):
    """A view that takes a blueprint's text; a problem with that has path and line beside its sentence."""

    def handle_exception(self, exc: Exception) -> Response:
        """Add them to what every problem has."""
        response = super().handle_exception(exc)
        if isinstance(exc, BlueprintError):
            response.data["errors"] = [_entry(exc)]
        return response


def _entry(error: BlueprintError) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "field": "source",
        "detail": echo(error.detail, MAX_DETAIL_LENGTH),
    }
    if error.field:
        entry["path"] = echo(error.field)
    if error.line is not None:
        entry["line"] = error.line
    return entry
