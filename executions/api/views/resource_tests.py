"""The endpoint that tests a resource definition.

Timing: request-time.
Model: sync views in threads; the test runs in a worker's runtime.
Guarantee: as the service's.
Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.serializers.executions import ExecutionDetailSerializer
from executions.api.views.executions import submitted_response
from executions.services.resource_test import blueprint_of, check_resource
from foundation.openapi import CHECKING, WRITING
from foundation.request_ids import current_request_id
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class ResourceTestView(NeedsPermission, APIView):
    """The test of a resource definition."""

    permission_by_method: ClassVar = {"POST": Permission.EXECUTION_RUN}

    @extend_schema(
        operation_id="test_resource",
        request=None,
        responses={202: ExecutionDetailSerializer, **WRITING, **CHECKING},
    )
    def post(self, request: Request, name: str) -> Response:
        """Submit a run that opens the resource, asks it for a sign of life and closes it; returns that run at once."""
        who = caller(request)
        who.require(Permission.EXECUTION_RUN, blueprint_of(name))
        run = check_resource(
            who.tenant, name, requested_by=who.name, request_id=current_request_id()
        )
        runs = request.path.split("/resources/")[0] + "/executions"
        return submitted_response(run.public_id, runs, is_new=True)
