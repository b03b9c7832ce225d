"""Costs are written once per attempt, and a budget that is spent ends the run whatever its failure modes."""

from decimal import Decimal
from typing import Any

import psycopg
import pytest

from executions.models import MonthlyCost
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.protocol import Cost
from isolane.results import Code
from resources.runtimes.stub import fails, succeeds
from tenants.models import Quota
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import costs_of, place, run_of, start, step_of, steps_of, ticket_of
from tests.integration.executions.statements import lose_answers
from tests.integration.executions.worker.driving import (
    costing,
    drive,
    in_turn,
    run_link,
    runs_of,
    saying,
    script,
)

Server = psycopg.Connection[tuple[object, ...]]
FLAKY = {"uses": "flaky"}
BUDGET = {"tokens": 10}
MODES: list[dict[str, Any]] = [
    {"on_failure": "abort"},
    {"on_failure": "continue"},
    {"on_failure": "retry", "retry": {"then": "continue"}},
    {"on_failure": "recover", "recover": {"uses": "rescue"}},
]

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


def set_budget(tenant: TenantRef, **budget: float) -> None:
    with platform_scope():
        Quota.objects.filter(tenant_id=tenant.id).update(budget=budget)


def monthly(tenant: TenantRef) -> dict[str, Decimal]:
    with tenant_scope(tenant):
        return dict(MonthlyCost.objects.values_list("kind", "amount"))


def assert_spent(tenant: TenantRef, execution_id: Any, whose: str) -> None:
    run = run_of(tenant, execution_id)
    assert (run.state, run.code) == ("failed", "BUDGET_EXCEEDED")
    assert run.message.startswith(f"The {whose}")
    assert ticket_of(execution_id) is None


def test_the_costs_of_a_step_are_summed_by_kind_and_exact(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    reports = [Cost(step="s1", kind="eur", amount=0.1) for _ in range(3)]
    script(boot, flaky=saying(reports, costing(812, succeeds(1))))
    placement = start(acme, boot, FLAKY, FLAKY)
    drive(acme, links, placement)
    assert monthly(acme) == {"eur": Decimal("0.6"), "tokens": 1624}
    assert run_of(acme, placement.execution_id).costs == {"eur": 0.6, "tokens": 1624}
    assert monthly(globex) == {}


def test_they_are_written_once_though_the_answer_was_lost(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    superuser: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script(boot, flaky=costing(4, succeeds(1)))
    placement = start(acme, boot, FLAKY, FLAKY, budget={"tokens": 8})
    lost = lose_answers(monkeypatch, superuser, "checkpoint")
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert lost
    assert costs_of(acme, placement.execution_id) == [
        ("s1", 1, "tokens", 4),
        ("s2", 1, "tokens", 4),
    ]
    assert monthly(acme) == {"tokens": 8}
    assert run_of(acme, placement.execution_id).costs == {"tokens": 8}


@pytest.mark.parametrize("mode", MODES)
def test_a_blueprints_budget_that_is_spent_ends_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: dict[str, Any]
) -> None:
    script(boot, flaky=costing(10, succeeds(1)))
    placement = start(acme, boot, FLAKY, mode, {}, budget=BUDGET)
    drive(acme, links, placement)
    assert_spent(acme, placement.execution_id, "blueprint's budget is spent: 10 of 10 tokens.")
    assert steps_of(acme, placement.execution_id) == {
        "s1": "succeeded", "s2": "failed", "s3": "skipped",
    }  # fmt: skip
    assert [run.step for run in runs_of(boot, placement)] == ["s1"]


def test_what_the_last_step_spends_does_not_undo_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=costing(100, succeeds(1)))
    placement = start(acme, boot, FLAKY, budget=BUDGET)
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED


@pytest.mark.parametrize("mode", MODES[2:])
def test_failed_attempts_spend_too_and_then_neither_retry_nor_recovery_runs(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: dict[str, Any]
) -> None:
    script(boot, flaky=costing(10, fails(Code.TRANSIENT_ERROR)))
    placement = start(acme, boot, {**FLAKY, **mode}, {}, budget=BUDGET)
    drive(acme, links, placement)
    assert_spent(acme, placement.execution_id, "blueprint's budget is spent")
    assert [run.uses for run in runs_of(boot, placement)] == ["flaky"]
    assert costs_of(acme, placement.execution_id) == [("s1", 1, "tokens", 10)]


@pytest.mark.parametrize("mode", MODES)
def test_a_tenants_budget_that_is_spent_ends_this_run_and_the_next(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, mode: dict[str, Any]
) -> None:
    set_budget(acme, tokens=10)
    script(boot, flaky=costing(6, succeeds(1)))
    first = start(acme, boot, FLAKY, FLAKY, mode)
    drive(acme, links, first)
    assert_spent(acme, first.execution_id, "tenant's budget for this month is spent")
    second = start(acme, boot, mode)
    drive(acme, links, second)
    assert_spent(acme, second.execution_id, "tenant's budget for this month is spent")
    assert runs_of(boot, second) == []


def test_a_neighbours_spending_is_not_ones_own(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    set_budget(acme, tokens=10)
    set_budget(globex, tokens=10)
    with tenant_scope(globex):
        MonthlyCost.objects.create(month="2000-01-01", kind="tokens", amount=99)
    try:
        with tenant_scope(acme):
            MonthlyCost.objects.create(month="2000-01-01", kind="tokens", amount=99)  # long ago
        placement = start(acme, boot, {})
        assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    finally:
        with tenant_scope(globex):
            MonthlyCost.objects.all().delete()


def test_what_was_spent_is_known_after_a_loss(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=costing(10, succeeds(1)))
    placement = start(acme, boot, FLAKY, {}, budget=BUDGET)
    run_link(links, placement, "s1")
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    drive(acme, links, again)
    assert_spent(acme, placement.execution_id, "blueprint's budget is spent")


def test_too_many_kinds_fail_the_step_and_are_not_billed_beyond_the_limit(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    reports = [Cost(step="s1", kind=f"k{number}", amount=1) for number in range(25)]
    script(boot, flaky=in_turn(saying(reports, succeeds(1))))
    placement = start(acme, boot, FLAKY)
    run = drive(acme, links, placement)
    assert (run.state, run.code) == ("failed", "POLICY_VIOLATION")
    assert "kinds of cost" in step_of(acme, placement.execution_id, "s1").message
    assert len(costs_of(acme, placement.execution_id)) == 20
