"""What the OpenAPI document says of these endpoints; the form of a problem is described once, beside executions."""

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from foundation.problems import CONTENT_TYPE as PROBLEM_TYPE

_PROBLEM = OpenApiResponse(
    {"$ref": "#/components/schemas/Problem"},
    description="A problem (application/problem+json).",
)
READING = {(status, PROBLEM_TYPE): _PROBLEM for status in (400, 401, 403, 404, 503)}
WRITING = {**READING, **{(status, PROBLEM_TYPE): _PROBLEM for status in (409, 413)}}
NAME = OpenApiParameter("name", str, OpenApiParameter.PATH)
