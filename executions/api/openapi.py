"""Parameters of several endpoints of executions, for the OpenAPI document."""

from drf_spectacular.utils import OpenApiParameter

EXECUTION_ID = OpenApiParameter(
    "id", str, OpenApiParameter.PATH, description="Id of the run: exec_<uuid>."
)
APPROVAL_NUMBER = OpenApiParameter(
    "number", int, OpenApiParameter.PATH, description="Number of the question, counted from 1."
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description=(
        "At most 200 characters. A repeated key with the same request returns the run that it created;"
        " with a different request it is refused."
    ),
)
