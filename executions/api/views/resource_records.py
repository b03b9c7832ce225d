"""Endpoints for the ledger of resources.

Timing: request-time. Model: sync views in threads. Guarantee: reads only. Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.callers import caller
from executions.api.openapi import EXECUTION_ID, READING, WRITING
from executions.api.serializers.history import MAX_PAGE, SinceSerializer
from executions.api.serializers.resource_records import (
    AbandonSerializer,
    BalanceSerializer,
    LedgerSerializer,
    LeftoverSerializer,
    ResourceRecordSerializer,
    UncleanSerializer,
)
from executions.api.views.history import HistoryView, page, query
from executions.selectors.resource_records import balance, count_runs, records, unclosed_records
from executions.services.abandoned_resources import abandon_leftover
from resources.api.callers import require_tenant_wide
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class LedgerView(HistoryView):
    """What a run had of its resources."""

    @extend_schema(
        operation_id="list_execution_resources",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: LedgerSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read every handle and issued thing of a run, and whether all of them are gone."""
        since = query(SinceSerializer, request)
        run = self.run(request, id)
        body = page(records(run, after=since["after"]), ResourceRecordSerializer, "pk", since)
        return Response(
            {
                "execution_id": run.public_id,
                "tenant_id": caller(request).tenant.schema,
                "balance": BalanceSerializer(balance(run)).data,
                **body,
            }
        )


class UncleanView(NeedsPermission, APIView):
    """What runs have left behind."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}

    @extend_schema(
        operation_id="list_unclean_executions", responses={200: UncleanSerializer, **READING}
    )
    def get(self, request: Request) -> Response:
        """Count and list the runs that have ended and still have something at a far side; normally none."""
        left = unclosed_records(caller(request).blueprints)
        results = LeftoverSerializer(left[:MAX_PAGE], many=True).data
        return Response({"total": count_runs(left), "results": results})


class AbandonView(NeedsPermission, APIView):
    """Giving up what cannot be revoked."""

    permission_by_method: ClassVar = {"POST": Permission.RESOURCE_EDIT}

    @extend_schema(
        operation_id="abandon_leftover", request=AbandonSerializer, responses={204: None, **WRITING}
    )
    def post(self, request: Request) -> Response:
        """Have something that an ended run left be revoked no longer; it may still exist at the far side."""
        who = caller(request)
        require_tenant_wide(who, Permission.RESOURCE_EDIT)
        sent = AbandonSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        abandon_leftover(who.tenant, sent.validated_data["resource_id"], actor=who.name)
        return Response(status=status.HTTP_204_NO_CONTENT)
