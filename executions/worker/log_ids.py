"""The ids that every log line of a run carries."""

from resources.placement import Placement
from tenants.selectors import schema_of


def log_ids(placement: Placement) -> dict[str, object]:
    """Return the ids of a placement's run for its log lines."""
    return {
        "execution_id": str(placement.execution_id),
        "tenant_id": schema_of(placement.tenant_id),
        "epoch": placement.epoch,
    }
