"""Problems of a blueprint's text, with the path and line that editors need."""

from typing import Any

from rest_framework.response import Response
from rest_framework.views import APIView

from executions.blueprints.errors import BlueprintError
from foundation.problems import MAX_DETAIL_LENGTH, echo


class BlueprintProblemsMixin(APIView):
    """A view that accepts a blueprint's text and reports where it does not fit."""

    def handle_exception(self, exc: Exception) -> Response:
        """Add path and line to the problem."""
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
