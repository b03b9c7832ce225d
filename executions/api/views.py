"""Endpoints for executions: parse, call one service, render.

Timing: request-time. Model: sync views in threads; no request waits for a run. Guarantee: as the service's.
Failure: bubble, as a problem.
"""

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from executions.api.serializers import (
    ExecutionDetailSerializer,
    ExecutionSerializer,
    ListQuerySerializer,
    ProblemSerializer,
    SubmitSerializer,
)
from executions.dispatch import admit_and_send
from executions.models import Execution
from executions.selectors import execution, executions
from executions.services.executions import request_cancel, submit
from orchestrator.core.errors import Unauthenticated
from orchestrator.core.problems import CONTENT_TYPE as PROBLEM_TYPE
from tenants.api.authentication import caller_of
from tenants.api.permissions import NeedsPermission
from tenants.caller import Caller
from tenants.roles import Permission

PROBLEM = OpenApiResponse(ProblemSerializer, description="A problem (application/problem+json).")
PROBLEMS = {(status, PROBLEM_TYPE): PROBLEM for status in (400, 401, 403, 404, 409, 503)}


def _caller(request: Request) -> Caller:
    caller = caller_of(request)
    if caller is None:
        raise Unauthenticated("Sign in, or send an API key.")
    return caller


class ExecutionsView(NeedsPermission, GenericAPIView[Execution]):
    """All runs of the tenant."""

    permission_by_method: ClassVar = {
        "GET": Permission.EXECUTION_VIEW,
        "POST": Permission.EXECUTION_RUN,
    }
    serializer_class = ExecutionSerializer
    queryset = Execution.objects.none()

    @extend_schema(
        operation_id="list_executions",
        parameters=[ListQuerySerializer],
        responses={200: ExecutionSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """List runs, newest first."""
        query = ListQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        found = executions()
        if state := query.validated_data.get("state"):
            found = found.filter(state=state)
        if blueprint := query.validated_data.get("blueprint"):
            found = found.filter(blueprint_version__blueprint__name=blueprint)
        page = self.paginate_queryset(found)
        return self.get_paginated_response(ExecutionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="submit_execution",
        request=SubmitSerializer,
        responses={202: ExecutionDetailSerializer, **PROBLEMS, (413, PROBLEM_TYPE): PROBLEM},
    )
    def post(self, request: Request) -> Response:
        """Submit a run; it starts when a slot is free. Answers at once."""
        caller = _caller(request)
        sent = SubmitSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        run = submit(tenant=caller.tenant, requested_by=caller.name, **sent.validated_data)
        # Before it can start: run and steps are read one after the other, and must tell the same story.
        body: Any = ExecutionDetailSerializer(execution(run.public_id)).data
        admit_and_send(bounded=True)
        return Response(
            body,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": f"{request.path}/{run.public_id}"},
        )


class ExecutionView(NeedsPermission, GenericAPIView[Execution]):
    """One run of the tenant."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}
    serializer_class = ExecutionDetailSerializer

    @extend_schema(
        operation_id="get_execution",
        parameters=[OpenApiParameter("id", str, OpenApiParameter.PATH)],
        responses={200: ExecutionDetailSerializer, **PROBLEMS},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read a run with its inputs and steps."""
        return Response(ExecutionDetailSerializer(execution(id)).data)


class CancelView(NeedsPermission, GenericAPIView[Execution]):
    """Cancelling a run."""

    permission_by_method: ClassVar = {"POST": Permission.EXECUTION_CANCEL}
    serializer_class = ExecutionDetailSerializer

    @extend_schema(
        operation_id="cancel_execution",
        parameters=[OpenApiParameter("id", str, OpenApiParameter.PATH)],
        request=None,
        responses={202: ExecutionDetailSerializer, **PROBLEMS},
    )
    def post(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Ask a run to stop; one that waits ends at once, one that runs within seconds."""
        run = execution(id)
        request_cancel(run.id, actor=_caller(request).name)
        return Response(
            ExecutionDetailSerializer(execution(id)).data, status=status.HTTP_202_ACCEPTED
        )
