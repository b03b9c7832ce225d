"""Endpoints for what happened in a run: events, also told, logs, costs. Each gives a bounded piece and where to go on.

Timing: request-time. Model: sync views in threads. Guarantee: reads only. Failure: bubble, as a problem.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer
from rest_framework.views import APIView

from executions.api.openapi import EXECUTION_ID, READING
from executions.api.serializers.history import (
    CostSerializer,
    CostsSerializer,
    EventSerializer,
    EventsSerializer,
    ExplanationSerializer,
    LogSerializer,
    LogsQuerySerializer,
    LogsSerializer,
    SentenceSerializer,
    SinceSerializer,
)
from executions.blueprints.amounts import amount_text
from executions.explain.query import status_of
from executions.explain.status import describe_status
from executions.models import Execution
from executions.selectors.executions import (
    cost_totals,
    costs,
    events,
    find_execution,
    logs,
    snapshot,
)
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class HistoryView(NeedsPermission, APIView):
    """What all of these share: the right, and finding the run."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}

    def run(self, request: Request, public_id: str) -> Execution:
        """The run, if the caller reaches it."""
        return find_execution(public_id, caller(request).blueprints)


class EventsView(HistoryView):
    """What happened in a run."""

    @extend_schema(
        operation_id="list_events",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: EventsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read a run's events, the oldest first."""
        since = query(SinceSerializer, request)
        found = events(self.run(request, id), after=since["after"])
        return Response(page(found, EventSerializer, "sequence", since))


class ExplanationView(HistoryView):
    """The story of a run."""

    @extend_schema(
        operation_id="explain_execution",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: ExplanationSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read what happened in a run, told in order, and how it stands now and why."""
        since = query(SinceSerializer, request)
        with snapshot():
            run = self.run(request, id)
            piece = page(events(run, after=since["after"]), SentenceSerializer, "sequence", since)
            standing = status_of(run)
        return Response({**piece, "state": run.state, "now": describe_status(standing)})


class LogsView(HistoryView):
    """What a run's steps said."""

    @extend_schema(
        operation_id="list_logs",
        parameters=[EXECUTION_ID, LogsQuerySerializer],
        responses={200: LogsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read the lines of a run's steps, the oldest first; what is sensitive is masked."""
        since = query(LogsQuerySerializer, request)
        found = logs(self.run(request, id), after=since["after"], step=since.get("step", ""))
        return Response(page(found, LogSerializer, "number", since, tenant_id=_tenant(request)))


class CostsView(HistoryView):
    """What a run cost."""

    @extend_schema(
        operation_id="list_costs",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: CostsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Read what each attempt cost, and all of them together."""
        since = query(SinceSerializer, request)
        run = self.run(request, id)
        piece = page(costs(run, after=since["after"]), CostSerializer, "pk", since)
        totals = {kind: amount_text(amount) for kind, amount in cost_totals(run).items()}
        return Response({**piece, "totals": totals})


def _tenant(request: Request) -> str:
    return caller(request).tenant.schema


def query(serializer: type[SinceSerializer], request: Request) -> dict[str, Any]:
    """Where to go on reading, as the caller says."""
    query = serializer(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def page(
    rows: QuerySet[Any],
    serializer: type[ModelSerializer[Any]],
    number: str,
    since: dict[str, Any],
    **context: str,
) -> dict[str, Any]:
    """One piece of a history, and where to read on."""
    size = since["page_size"]
    # One more than asked for says whether there is more.
    found: Sequence[Model] = list(rows[: size + 1])
    shown = found[:size]
    return {
        "after": getattr(shown[-1], number) if shown else since["after"],
        "has_more": len(found) > size,
        "results": serializer(shown, many=True, context=context).data,
    }
