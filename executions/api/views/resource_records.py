"""Endpoints for the ledger of resources.

Timing: request-time.
Model: sync views in threads.
Guarantee: reads only.
Failure: bubble, as a problem.
"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from executions.api.openapi import EXECUTION_ID
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
from foundation.openapi import READING, WRITING
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class LedgerView(HistoryView):
    """The ledger of a run."""

    @extend_schema(
        operation_id="list_execution_resources",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: LedgerSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """List every handle and issued credential of a run, with the totals that show if all of them are gone."""
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
    """The runs that have ended and are not clean."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}

    @extend_schema(
        operation_id="list_unclean_executions", responses={200: UncleanSerializer, **READING}
    )
    def get(self, request: Request) -> Response:
        """Count the runs that have ended and still have something on a remote server, and list it; normally none."""
        leftovers = unclosed_records(caller(request).blueprints)
        results = LeftoverSerializer(leftovers[:MAX_PAGE], many=True).data
        return Response({"total": count_runs(leftovers), "results": results})


class AbandonView(NeedsPermission, APIView):
    """The end of attempts to revoke a leftover credential."""

    permission_by_method: ClassVar = {"POST": Permission.RESOURCE_EDIT}

    @extend_schema(
        operation_id="abandon_leftover", request=AbandonSerializer, responses={204: None, **WRITING}
    )
    def post(self, request: Request) -> Response:
        """Stop trying to revoke a leftover credential; it may still exist on the remote server."""
        who = caller(request)
        who.require_tenant_wide(Permission.RESOURCE_EDIT)
        sent = AbandonSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        abandon_leftover(who.tenant, sent.validated_data["resource_id"], actor=who.name)
        return Response(status=status.HTTP_204_NO_CONTENT)
