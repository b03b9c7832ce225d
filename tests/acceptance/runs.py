"""Runs on real workers, seen from outside."""

from typing import Any

from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.placement.models import Ticket
from executions.services.publishing import publish
from executions.states import TERMINAL_EXECUTION
from executions.submission.submit import RunRequest, submit
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.waiting import wait_for


def start_run(
    tenant: TenantRef, *steps: dict[str, Any], given: dict[str, Any] | None = None, **fields: Any
) -> Execution:
    """Publish a blueprint of these steps, s1, s2, … unless named, and these fields; submit a run of it."""
    numbered = [{"key": f"s{number}", **step} for number, step in enumerate(steps, start=1)]
    with tenant_scope(tenant):
        version = publish({"name": "flow", "steps": numbered, **fields}).number
    run = submit(
        tenant,
        RunRequest(blueprint="flow", version=version, inputs=given or {}, requested_by="test"),
    ).execution
    admit_and_send()
    return run


def reload(tenant: TenantRef, run: Execution) -> Execution:
    """Its row as it is now."""
    with tenant_scope(tenant):
        return Execution.objects.get(pk=run.pk)


def step_states(tenant: TenantRef, run: Execution) -> list[tuple[str, str, int]]:
    """Path, state and attempt of each step."""
    with tenant_scope(tenant):
        return list(run.steps.order_by("position").values_list("path", "state", "attempt"))


def ended(tenant: TenantRef, run: Execution, seconds: float = 20) -> Execution:
    """Wait for its end."""

    def terminal() -> Execution | None:
        found = reload(tenant, run)
        return found if found.state in TERMINAL_EXECUTION else None

    return wait_for(terminal, f"the run of {tenant.schema} to end", seconds)


def step_runs(tenant: TenantRef, run: Execution, path: str) -> None:
    """Wait until this step runs."""

    def running() -> bool:
        return (path, "running") in {(p, state) for p, state, _ in step_states(tenant, run)}

    wait_for(running, f"step {path} to run")


def no_slot_is_held() -> None:
    """Every run has ended."""
    with platform_scope():
        assert not Ticket.objects.exists()
