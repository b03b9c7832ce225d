"""Questions of runs to people, in the tenant entered; `reach`: names of the visible blueprints, None means all."""

from django.db.models import QuerySet

from executions.models import Approval, Execution
from executions.selectors.executions import Reach
from foundation.errors import NotFound


def approvals(reach: Reach = None) -> QuerySet[Approval]:
    """Return the questions of all runs, the newest first."""
    found = Approval.objects.select_related("execution__blueprint_version__blueprint").only(
        *(field.name for field in Approval._meta.fields),
        "execution__blueprint_version__blueprint__name",
    )
    if reach is not None:
        found = found.filter(execution__blueprint_version__blueprint__name__in=reach)
    return found.order_by("-asked_at", "id")


def approval(run: Execution, number: int) -> Approval:
    """Return one question of a run."""
    found = approvals().filter(execution_id=run.pk, number=number).first()
    if found is None:
        raise NotFound(f"{run.public_id} has no approval {number}.", field="number")
    return found
