"""Responses and parameters that all endpoints share in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from foundation.problems import CONTENT_TYPE as PROBLEM_TYPE


class ProblemErrorSerializer(serializers.Serializer[Any]):
    """One field that was refused, and why."""

    field = serializers.CharField(help_text="Name of the field in the request.")
    detail = serializers.CharField()
    path = serializers.CharField(
        required=False, help_text="Path within the blueprint, such as $.steps[0].with.x."
    )
    line = serializers.IntegerField(
        required=False, min_value=1, help_text="Line in the blueprint's text, counted from 1."
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """An error as defined by RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="Stable; programs should decide by this.")
    field = serializers.CharField(required=False)

    def get_fields(self) -> Any:
        """Add `errors`; as a class attribute it would hide DRF's property of that name."""
        errors = ProblemErrorSerializer(many=True, required=False)
        return {**super().get_fields(), "errors": errors}


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Return a problem response for each of these statuses."""
    problem = OpenApiResponse(
        ProblemSerializer, description="A problem (application/problem+json)."
    )
    return {(status, PROBLEM_TYPE): problem for status in statuses}


READING = problems(400, 401, 403, 404, 503)
WRITING = problems(400, 401, 403, 404, 409, 413, 503)
CHECKING = problems(422, 429)  # where blueprints, inputs or values of a run are checked
NAME = OpenApiParameter("name", str, OpenApiParameter.PATH)
