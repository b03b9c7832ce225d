"""Endpoints for the history of a run: events, explanation, logs, costs. Each returns one page and the next position.

Timing: request-time.
Model: sync views in threads.
Guarantee: reads only.
Failure: bubble, as a problem.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer
from rest_framework.views import APIView

from executions.api.openapi import EXECUTION_ID
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
from executions.selectors.executions import find_execution, snapshot
from executions.selectors.history import cost_totals, costs, events, logs
from foundation.openapi import READING
from tenants.api.callers import caller
from tenants.api.permissions import NeedsPermission
from tenants.roles import Permission


class HistoryView(NeedsPermission, APIView):
    """Base of these views: the permission, and the lookup of the run."""

    permission_by_method: ClassVar = {"GET": Permission.EXECUTION_VIEW}

    def run(self, request: Request, public_id: str) -> Execution:
        """Return the run, if it is within the caller's reach."""
        return find_execution(public_id, caller(request).blueprints)


class EventsView(HistoryView):
    """The events of a run."""

    @extend_schema(
        operation_id="list_events",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: EventsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """List the events of a run, the oldest first."""
        since = query(SinceSerializer, request)
        found = events(self.run(request, id), after=since["after"])
        return Response(page(found, EventSerializer, "sequence", since))


class ExplanationView(HistoryView):
    """The explanation of a run."""

    @extend_schema(
        operation_id="explain_execution",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: ExplanationSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """Explain a run: its events as sentences, the oldest first, and its status with the reason."""
        since = query(SinceSerializer, request)
        with snapshot():
            run = self.run(request, id)
            body = page(events(run, after=since["after"]), SentenceSerializer, "sequence", since)
            status = status_of(run)
        return Response({**body, "state": run.state, "now": describe_status(status)})


class LogsView(HistoryView):
    """The log lines of a run."""

    @extend_schema(
        operation_id="list_logs",
        parameters=[EXECUTION_ID, LogsQuerySerializer],
        responses={200: LogsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """List the log lines of a run's steps, the oldest first. Sensitive values are masked."""
        since = query(LogsQuerySerializer, request)
        found = logs(self.run(request, id), after=since["after"], step=since.get("step", ""))
        return Response(page(found, LogSerializer, "number", since, tenant_id=_tenant(request)))


class CostsView(HistoryView):
    """The costs of a run."""

    @extend_schema(
        operation_id="list_costs",
        parameters=[EXECUTION_ID, SinceSerializer],
        responses={200: CostsSerializer, **READING},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name in the URL
        """List the costs of each attempt, with the totals."""
        since = query(SinceSerializer, request)
        run = self.run(request, id)
        body = page(costs(run, after=since["after"]), CostSerializer, "pk", since)
        totals = {kind: amount_text(amount) for kind, amount in cost_totals(run).items()}
        return Response({**body, "totals": totals})


def _tenant(request: Request) -> str:
    return caller(request).tenant.schema


def query(serializer: type[SinceSerializer], request: Request) -> dict[str, Any]:
    """Parse the query parameters."""
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
    """Return one page of a history, and the position of the next."""
    size = since["page_size"]
    # One row more than requested shows if there is another page.
    found: Sequence[Model] = list(rows[: size + 1])
    shown = found[:size]
    return {
        "after": getattr(shown[-1], number) if shown else since["after"],
        "has_more": len(found) > size,
        "results": serializer(shown, many=True, context=context).data,
    }
