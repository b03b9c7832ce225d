"""Endpoints for questions of runs to people: list, read, answer.

Timing: request-time.
Model: sync views in threads; no request waits for a run.
Guarantee: as the service's.
Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.openapi import APPROVAL_NUMBER, EXECUTION_ID
from executions.api.serializers.approvals import (
    AnswerSerializer,
    ApprovalSerializer,
    ApprovalsQuerySerializer,
)
from executions.models import Approval
from executions.placement.dispatch import admit_and_send
from executions.selectors.approvals import approval, approvals
from executions.selectors.executions import find_execution
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import answer
from foundation.openapi import CHECKING, READING, WRITING
from foundation.pagination import NewestFirst
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class NewestQuestionFirst(NewestFirst):
    """Pages of questions, the newest first."""

    ordering = ("-asked_at", "id")


class ApprovalsView(NeedsPermission, GenericAPIView[Approval]):
    """The questions of runs within the caller's reach."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}
    serializer_class = ApprovalSerializer
    pagination_class = NewestQuestionFirst
    queryset = Approval.objects.none()

    @extend_schema(
        operation_id="list_approvals",
        parameters=[ApprovalsQuerySerializer],
        responses={200: ApprovalSerializer(many=True), **READING},
    )
    def get(self, request: Request) -> Response:
        """List the questions that runs have asked people, the newest first."""
        query = ApprovalsQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        wanted, found = query.validated_data, approvals(caller(request).blueprints)
        if state := wanted.get("state"):
            found = found.filter(state=state)
        if blueprint := wanted.get("blueprint"):
            found = found.filter(execution__blueprint_version__blueprint__name=blueprint)
        if execution := wanted.get("execution"):
            found = found.filter(execution_id=execution)
        page = self.paginate_queryset(found)
        return self.get_paginated_response(ApprovalSerializer(page, many=True).data)


class ApprovalView(NeedsPermission, APIView):
    """A question of a run."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}

    @extend_schema(
        operation_id="get_approval",
        parameters=[EXECUTION_ID, APPROVAL_NUMBER],
        responses={200: ApprovalSerializer, **READING},
    )
    def get(self, request: Request, id: str, number: int) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Return a question of a run."""
        run = find_execution(id, caller(request).blueprints)
        return Response(ApprovalSerializer(approval(run, number)).data)


class AnswerView(NeedsPermission, APIView):
    """The answer to a question."""

    permission_by_method: ClassVar = {"POST": Permission.EXECUTION_ANSWER}

    @extend_schema(
        operation_id="answer_approval",
        parameters=[EXECUTION_ID, APPROVAL_NUMBER],
        request=AnswerSerializer,
        responses={200: ApprovalSerializer, **WRITING, **CHECKING},
    )
    def post(self, request: Request, id: str, number: int) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Approve or reject; the run continues when a slot is free. Repeating the same answer changes nothing."""
        who = caller(request)
        sent = AnswerSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        reply = ApprovalReply(**sent.validated_data, by=who.name)
        answered = answer(who.tenant, id, number, reply, reach=who.blueprints)
        admit_and_send(bounded=True)
        return Response(ApprovalSerializer(answered).data)
