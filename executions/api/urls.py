"""URLs below /api/v1/."""

from django.urls import path

from executions.api.views import CancelView, ExecutionsView, ExecutionView

urlpatterns = [
    path("executions", ExecutionsView.as_view(), name="executions"),
    path("executions/<str:id>", ExecutionView.as_view(), name="execution"),
    path("executions/<str:id>/cancel", CancelView.as_view(), name="cancel-execution"),
]
