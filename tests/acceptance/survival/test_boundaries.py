"""Six guarantees, and the worker killed at every boundary of a step; then one that loses the database's answers."""

from collections import Counter
from dataclasses import dataclass

import pytest

from executions.models import Execution
from executions.placement.models import Worker
from executions.states import TERMINAL_EXECUTION
from tenants.scope import TenantRef, platform_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import ended, no_slot_is_held, reload, start_run, step_states
from tests.acceptance.survival.judge import Judge, story
from tests.factories import set_quota

BOUNDARIES = (
    "before the claim",
    "after the claim",
    "in the middle of the effect",
    "after the effect",
    "after the checkpoint",
    "before the next link is published",
    "before the close",
    "after the teardown",
    "in the closing transaction",
)
GUARANTEES = {
    "exactly_once": {"uses": "survival.keyed", "guarantee": "exactly_once"},
    "at_most_once": {"uses": "survival.plain", "guarantee": "at_most_once"},
    "at_least_once": {"uses": "survival.plain", "guarantee": "at_least_once"},
    "best_effort": {"uses": "survival.plain", "guarantee": "best_effort"},
    "idempotent": {"uses": "survival.idempotent"},
    "deterministic": {"uses": "survival.deterministic"},
}
CUT = frozenset({"after the claim", "in the middle of the effect", "after the effect"})
BEGUN = frozenset({"in the middle of the effect", "after the effect"})


@dataclass(frozen=True)
class Case:
    """One run, and what is to become of it."""

    boundary: str
    guarantee: str
    tenant: TenantRef
    run: Execution

    def promised(self) -> tuple[str, str, list[str], "Counter[str]"]:
        """Its state and code, the states of its steps, and how often each has begun."""
        cut, begun = self.boundary in CUT, self.boundary in BEGUN
        if cut and self.guarantee == "at_most_once":
            return "failed", "OUTCOME_UNKNOWN", ["failed", "skipped"], Counter(s1=int(begun))
        if cut and self.guarantee == "best_effort":
            return "succeeded", "", ["failed", "succeeded"], Counter(s1=int(begun), s2=1)
        return "succeeded", "", ["succeeded"] * 2, Counter(s1=1 + int(begun), s2=1)

    def found(self, judge: Judge) -> tuple[str, str, list[str], "Counter[str]"]:
        """The same as it is."""
        run = reload(self.tenant, self.run)
        states = [state for _, state, _ in step_states(self.tenant, run)]
        return run.state, run.code, states, judge.starts(run)


def submit(turn: int, boundary: str, tenants: list[TenantRef], judge: Judge) -> list[Case]:
    """One run for each guarantee, by turns of the tenants: at the next boundary each guarantee is another tenant's."""
    hold = "once" if boundary == "in the middle of the effect" else ""
    cases = []
    for number, (guarantee, step) in enumerate(GUARANTEES.items(), start=turn):
        first = {**step, "with": {"folder": str(judge.folder), "hold": hold}}
        second = {"uses": "survival.plain", "with": {"folder": str(judge.folder)}}
        tenant = tenants[number % len(tenants)]
        cases.append(Case(boundary, guarantee, tenant, start_run(tenant, first, second)))
    return cases


@pytest.mark.timeout(240)
def test_every_guarantee_holds_wherever_the_worker_dies(
    acme: TenantRef,
    globex: TenantRef,
    both_levels: dict[str, str],
    start_worker: StartWorker,
    judge: Judge,
) -> None:
    tenants = [acme, globex]
    for tenant in tenants:
        set_quota(tenant, 100)
    cases: list[Case] = []
    for turn, boundary in enumerate(BOUNDARIES):
        # Full with these runs, so that the dead one gets no others while its lease lasts.
        worker = start_worker(fault=boundary, links=len(GUARANTEES), capacity=len(GUARANTEES))
        cases += submit(turn, boundary, tenants, judge)
        assert worker.process.wait(30) == -9
    survivor = start_worker(fault="answers lost", capacity=len(GUARANTEES))
    cases += submit(len(BOUNDARIES), "answers lost", tenants, judge)
    for case in cases:
        ended(case.tenant, case.run, seconds=90)
    wrong = {
        (case.boundary, case.guarantee): (
            case.promised(),
            case.found(judge),
            story(case.tenant, case.run),
        )
        for case in cases
        if case.promised() != case.found(judge)
    }
    assert wrong == {}
    # The same key each time: the remote server has had each effect once.
    assert judge.keys() == len([case for case in cases if case.guarantee == "exactly_once"])
    for case in cases:
        kinds = Counter(story(case.tenant, case.run))
        assert kinds["placement.lost"] == int(case.boundary != "answers lost"), case
        assert kinds["fence.refused"] == 0
        assert reload(case.tenant, case.run).isolation == both_levels[case.tenant.schema]
    no_slot_is_held()
    with platform_scope():
        assert [worker.node_name for worker in Worker.objects.all()] == [survivor.name]
    assert all(reload(case.tenant, case.run).state in TERMINAL_EXECUTION for case in cases)
