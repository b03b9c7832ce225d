"""URLs below /api/v1/."""

from django.urls import path

from executions.api.views.approvals import AnswerView, ApprovalsView, ApprovalView
from executions.api.views.blueprints import (
    BlueprintSchemaView,
    BlueprintsView,
    BlueprintView,
    DiffView,
    NodesView,
    ValidateView,
    VersionView,
)
from executions.api.views.executions import CancelView, ExecutionsView, ExecutionView, ReplayView
from executions.api.views.history import CostsView, EventsView, ExplanationView, LogsView
from executions.api.views.levels import LevelsView
from executions.api.views.resource_records import AbandonView, LedgerView, UncleanView
from executions.api.views.resource_tests import ResourceTestView

urlpatterns = [
    path("executions", ExecutionsView.as_view(), name="executions"),
    path("executions/unclean", UncleanView.as_view(), name="unclean-executions"),
    path("executions/unclean/abandon", AbandonView.as_view(), name="abandon-leftover"),
    path("executions/<str:id>", ExecutionView.as_view(), name="execution"),
    path("executions/<str:id>/cancel", CancelView.as_view(), name="cancel-execution"),
    path("executions/<str:id>/replay", ReplayView.as_view(), name="replay-execution"),
    path("executions/<str:id>/events", EventsView.as_view(), name="events"),
    path("executions/<str:id>/explanation", ExplanationView.as_view(), name="explanation"),
    path("executions/<str:id>/logs", LogsView.as_view(), name="logs"),
    path("executions/<str:id>/costs", CostsView.as_view(), name="costs"),
    path("executions/<str:id>/resources", LedgerView.as_view(), name="execution-resources"),
    path("executions/<str:id>/approvals/<int:number>", ApprovalView.as_view(), name="approval"),
    path(
        "executions/<str:id>/approvals/<int:number>/answer",
        AnswerView.as_view(),
        name="answer-approval",
    ),
    path("approvals", ApprovalsView.as_view(), name="approvals"),
    path("blueprints", BlueprintsView.as_view(), name="blueprints"),
    path("blueprints/validate", ValidateView.as_view(), name="validate-blueprint"),
    path("blueprints/<str:name>", BlueprintView.as_view(), name="blueprint"),
    path("blueprints/<str:name>/versions/<int:number>", VersionView.as_view(), name="version"),
    path("blueprints/<str:name>/diff", DiffView.as_view(), name="diff"),
    path("resources/<str:name>/test", ResourceTestView.as_view(), name="test-resource"),
    path("levels", LevelsView.as_view(), name="levels"),
    path("nodes", NodesView.as_view(), name="nodes"),
    path("blueprint-schema", BlueprintSchemaView.as_view(), name="blueprint-schema"),
]
