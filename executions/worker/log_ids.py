"""Whose placement it is, as every log line of a run says."""

from executions.transitions.fence import Placement
from tenants.selectors import schema_of


def log_ids(placement: Placement) -> dict[str, object]:
    """What every log line of a run carries."""
    return {
        "execution_id": str(placement.execution_id),
        "tenant_id": schema_of(placement.tenant_id),
        "epoch": placement.epoch,
    }
