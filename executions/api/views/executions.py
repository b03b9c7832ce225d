"""Endpoints for executions: parse, call one service, render.

Timing: request-time.
Model: sync views in threads; no request waits for a run.
Guarantee: as the service's.
Failure: bubble, as a problem.
"""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from executions.api.openapi import EXECUTION_ID, IDEMPOTENCY_KEY
from executions.api.serializers.executions import (
    ExecutionDetailSerializer,
    ExecutionSerializer,
    ListQuerySerializer,
    SubmitSerializer,
)
from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.selectors.executions import execution, executions, find_execution, labelled
from executions.submission.cancel import request_cancel
from executions.submission.replay import replay
from executions.submission.submit import RunRequest, submit
from foundation.openapi import CHECKING, READING, WRITING
from foundation.request_ids import current_request_id
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class ExecutionsView(NeedsPermission, GenericAPIView[Execution]):
    """The runs within the caller's reach."""

    permission_by_method: ClassVar = {
        "GET": Permission.EXECUTION_VIEW,
        "POST": Permission.EXECUTION_RUN,
    }
    serializer_class = ExecutionSerializer
    queryset = Execution.objects.none()

    @extend_schema(
        operation_id="list_executions",
        parameters=[ListQuerySerializer],
        responses={200: ExecutionSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List runs, the newest first."""
        wanted = _list_query(request)
        found = executions(caller(request).blueprints)
        if state := wanted.get("state"):
            found = found.filter(state=state)
        if blueprint := wanted.get("blueprint"):
            found = found.filter(blueprint_version__blueprint__name=blueprint)
        for label in wanted.get("label", ()):
            found = labelled(found, label)
        page = self.paginate_queryset(found)
        return self.get_paginated_response(ExecutionSerializer(page, many=True).data)

    @extend_schema(
        operation_id="submit_execution",
        parameters=[IDEMPOTENCY_KEY],
        request=SubmitSerializer,
        responses={
            200: ExecutionDetailSerializer,
            202: ExecutionDetailSerializer,
            **WRITING,
            **CHECKING,
        },
    )
    def post(self, request: Request) -> Response:
        """Submit a run; it starts when a slot is free. Returns 202, or 200 if the idempotency key was used before."""
        who = caller(request)
        sent = SubmitSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        who.require(Permission.EXECUTION_RUN, sent.validated_data["blueprint"])
        run_request = RunRequest(
            **sent.validated_data,
            requested_by=who.name,
            request_id=current_request_id(),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        submitted = submit(who.tenant, run_request)
        return submitted_response(
            submitted.execution.public_id, request.path, is_new=submitted.is_new
        )


class ExecutionView(NeedsPermission, GenericAPIView[Execution]):
    """A run."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}
    serializer_class = ExecutionDetailSerializer

    @extend_schema(
        operation_id="get_execution",
        parameters=[EXECUTION_ID],
        responses={200: ExecutionDetailSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Return a run with its values and steps, all read at the same moment."""
        return Response(ExecutionDetailSerializer(execution(id, caller(request).blueprints)).data)


class CancelView(NeedsPermission, GenericAPIView[Execution]):
    """The cancellation of a run."""

    permission_by_method: ClassVar = {"POST": Permission.EXECUTION_CANCEL}
    serializer_class = ExecutionDetailSerializer

    @extend_schema(
        operation_id="cancel_execution",
        parameters=[EXECUTION_ID],
        request=None,
        responses={202: ExecutionDetailSerializer, **WRITING},
    )
    def post(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Request that a run stops: a waiting run ends at once, a running one within seconds."""
        who = caller(request)
        request_cancel(find_execution(id, who.blueprints).pk, actor=who.name)
        body = ExecutionDetailSerializer(execution(id)).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


class ReplayView(NeedsPermission, GenericAPIView[Execution]):
    """The replay of a run."""

    permission_by_method: ClassVar = {"POST": Permission.EXECUTION_RUN}
    serializer_class = ExecutionDetailSerializer

    @extend_schema(
        operation_id="replay_execution",
        parameters=[EXECUTION_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={
            200: ExecutionDetailSerializer,
            202: ExecutionDetailSerializer,
            **WRITING,
            **CHECKING,
        },
    )
    def post(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Submit a run again with the same version, seed and inputs; deterministic steps must give the same output."""
        who = caller(request)
        original = find_execution(id, who.blueprints)
        submitted = replay(
            who.tenant,
            original.pk,
            requested_by=who.name,
            request_id=current_request_id(),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        runs = request.path.rsplit("/", 2)[0]
        return submitted_response(submitted.execution.public_id, runs, is_new=submitted.is_new)


def submitted_response(public_id: str, runs: str, *, is_new: bool) -> Response:
    """Return the response for a submitted run, and start admission if it is new."""
    # Read before admission, so that the response always shows a queued run.
    body: Any = ExecutionDetailSerializer(execution(public_id)).data
    if is_new:
        admit_and_send(bounded=True)
    return Response(
        body,
        status=status.HTTP_202_ACCEPTED if is_new else status.HTTP_200_OK,
        headers={"Location": f"{runs}/{public_id}"},
    )


def _list_query(request: Request) -> dict[str, Any]:
    sent: dict[str, Any] = request.query_params.dict()
    if "label" in sent:
        sent["label"] = request.query_params.getlist("label")
    query = ListQuerySerializer(data=sent)
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)
