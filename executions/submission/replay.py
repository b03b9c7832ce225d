"""Submit a run again, with the same version, seed and inputs.

Timing: request-time.
Model: sync.
Guarantee: as a submission's.
Failure: bubble, as an IsolaneError with code and field.
"""

from uuid import UUID

from executions.models import Execution
from executions.models.sealing import unseal
from executions.submission.submit import RunRequest, Submitted, submit
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope


def replay(
    tenant: TenantRef,
    execution_id: UUID,
    *,
    requested_by: str,
    request_id: str = "",
    idempotency_key: str = "",
) -> Submitted:
    """Submit a run again; steps declared deterministic must give the same output."""
    with tenant_scope(tenant):
        runs = Execution.objects.select_related("blueprint_version__blueprint")
        original = runs.filter(pk=execution_id).first()
        if original is None:
            raise NotFound(f"There is no execution exec_{execution_id}.", field="id")
        sealed = original.sealed_inputs
        inputs = unseal(original.pk, bytes(sealed)) if sealed else original.inputs
    return submit(
        tenant,
        RunRequest(
            blueprint=original.blueprint_version.blueprint.name,
            version=original.blueprint_version.number,
            inputs=inputs,
            seed=original.seed,
            requested_by=requested_by,
            request_id=request_id,
            idempotency_key=idempotency_key,
            replay_of=original.pk,
        ),
    )
