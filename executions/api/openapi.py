"""What the OpenAPI document says of every endpoint."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from foundation.problems import CONTENT_TYPE as PROBLEM_TYPE


class ProblemErrorSerializer(serializers.Serializer[Any]):
    """One of the things that do not fit."""

    field = serializers.CharField(help_text="Of the request.")
    detail = serializers.CharField()
    path = serializers.CharField(
        required=False, help_text="Within a blueprint that was sent, such as $.steps[0].with.x."
    )
    line = serializers.IntegerField(
        required=False, min_value=1, help_text="Of that blueprint's text, from 1."
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """An error, as RFC 9457 has it."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="Stable; decide by this.")
    field = serializers.CharField(required=False)

    def get_fields(self) -> Any:
        """Add `errors`, a name that DRF's class has taken."""
        errors = ProblemErrorSerializer(many=True, required=False)
        return {**super().get_fields(), "errors": errors}


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """The refusals that an endpoint may answer with."""
    problem = OpenApiResponse(
        ProblemSerializer, description="A problem (application/problem+json)."
    )
    return {(status, PROBLEM_TYPE): problem for status in statuses}


READING = problems(400, 401, 403, 404, 503)
WRITING = problems(400, 401, 403, 404, 409, 413, 503)
CHECKING = problems(422, 429)  # where a blueprint, inputs or a run's values are worked on
EXECUTION_ID = OpenApiParameter("id", str, OpenApiParameter.PATH, description="exec_<uuid>")
APPROVAL_NUMBER = OpenApiParameter("number", int, OpenApiParameter.PATH, description="From 1.")
BLUEPRINT_NAME = OpenApiParameter("name", str, OpenApiParameter.PATH)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Up to 200 characters. The same key with the same request gives the run that it made before.",
)
