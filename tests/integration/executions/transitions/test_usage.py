"""The usage of a run: written with the end of each placement, processor time added up, of RAM the greatest."""

from dataclasses import replace

import pytest

from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.transitions.settlement import UNKNOWN, Settlement
from executions.worker.boot import WorkerBoot
from isolane.limits import Usage
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import place, run_of

END = PlacementEnd(reason=EndReason.WORKER_DRAINING)
SETTLEMENT = pytest.mark.parametrize("settlement", [None, UNKNOWN])
pytestmark = pytest.mark.usefixtures("neighbour")


def used(tenant: TenantRef, placement: Placement) -> tuple[float, float]:
    run = run_of(tenant, placement.execution_id)
    return run.cpu_seconds, run.peak_ram_mb


@SETTLEMENT
def test_it_adds_up_over_restart_hand_back_and_close(
    acme: TenantRef, boot: WorkerBoot, claimed: Placement, settlement: Settlement | None
) -> None:
    assert used(acme, claimed) == (0, 0)
    with tenant_scope(acme):
        usage = Usage(cpu_seconds=1.5, peak_ram_mb=40)
        restart(claimed, reason=EndReason.RUNTIME_ENDED, settlement=settlement, usage=usage)
    assert used(acme, claimed) == (1.5, 40)
    with tenant_scope(acme):
        usage = Usage(cpu_seconds=0.5, peak_ram_mb=64.5)
        assert hand_back(replace(claimed, epoch=2), END, settlement=settlement, usage=usage)
    assert used(acme, claimed) == (2, 64.5)
    again = place(acme, claimed.execution_id, boot)
    with tenant_scope(acme):
        set_outcome(again, ExecutionState.FAILED, code="", message="")
        assert close_execution(again, settlement, usage=Usage(cpu_seconds=2, peak_ram_mb=8))
    assert used(acme, claimed) == (4, 64.5)


def test_an_end_that_is_refused_adds_nothing(acme: TenantRef, claimed: Placement) -> None:
    old, usage = replace(claimed, epoch=7), Usage(cpu_seconds=9, peak_ram_mb=9)
    with tenant_scope(acme):
        assert hand_back(old, END, usage=usage) is None
        assert restart(old, reason=EndReason.RUNTIME_ENDED, usage=usage) is None
        set_outcome(claimed, ExecutionState.FAILED, code="", message="")
        assert close_execution(old, usage=usage) is None
    assert used(acme, claimed) == (0, 0)


def test_an_end_without_a_runtime_adds_nothing(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        assert hand_back(claimed, END)
    assert used(acme, claimed) == (0, 0)
