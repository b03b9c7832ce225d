"""The five compliance tests of NORP-006, section 9.1, as remote servers see them, for each kind of resource.

All are run at level `process`, in tenants that are not trusted. At `shared`, where runners are reused, the third one is
run for each kind; `isolane norp` runs all five there, too (`test_command.py`).
"""

from itertools import product

import pytest

from orchestrator.norp.criteria import Verdict
from orchestrator.norp.suite import Target, run_tests
from orchestrator.norp.temporary_tenants import trust_for
from resources.runtimes.base import Availability
from tenants.isolation import Isolation
from tenants.scope import TenantRef
from tests.norp.conftest import KINDS
from tests.norp.connection_logs import ConnectionLog
from tests.requirements import give_up
from tests.waiting import wait_for

at_process = pytest.mark.parametrize(("kind", "level"), [*product(KINDS, ("process",))])
at_both = pytest.mark.parametrize(("kind", "level"), [*product(KINDS, ("process", "shared"))])
Targets = dict[str, Target]
ConnectionLogs = dict[str, ConnectionLog]


@pytest.fixture(autouse=True)
def _tenants_of(level: str, tenants: list[TenantRef], process_level: Availability) -> None:
    """Let them be trusted at `shared` alone."""
    if level == "process" and not process_level.ok:
        give_up(f"the level process is not available: {process_level.reason}")
    trust_for(Isolation(level), tenants, actor="tests")


def passed(test: int, target: Target, level: str) -> Verdict:
    """Run one test and show its evidence if it does not hold."""
    (verdict,) = run_tests(target, level, requested_by="tests", tests=[test])
    failing = [one for one in verdict.evidence if not one.holds]
    assert verdict.holds, failing
    assert {run.level for run in verdict.runs} == {level}
    return verdict


def all_closed(logs: ConnectionLog | None, verdict: Verdict) -> None:
    """The server's own log has an end for every connection of these runs."""
    if logs is None:
        return
    for run in verdict.runs:
        opened = logs.opened(run.execution_id)
        assert opened == len(run.connection_ids)
        wait_for(
            lambda run=run, opened=opened: logs.closed(run.execution_id) == opened,  # type: ignore[misc]  # bound loop variables
            f"the server to note the end of {run.name}",
        )


@at_process
def test_1_execution_isolation(
    targets: Targets, logs: ConnectionLogs, kind: str, level: str
) -> None:
    verdict = passed(1, targets[kind], level)
    *_, first, second = verdict.runs
    assert first.resource_ids.isdisjoint(second.resource_ids)
    together = verdict.evidence[-1].facts["connected_together_s"]
    assert together > 0  # they were there at the same time: not one after the other
    all_closed(logs.get(kind), verdict)


@at_process
def test_2_intra_execution_pooling(
    targets: Targets, logs: ConnectionLogs, kind: str, level: str
) -> None:
    verdict = passed(2, targets[kind], level)
    (run,) = verdict.runs
    assert [use.step for use in run.uses] == ["n1", "n2", "n3"]
    assert kind not in logs or logs[kind].opened(run.execution_id) == 1
    all_closed(logs.get(kind), verdict)


@at_both
def test_3_cross_execution_reuse_rejection(
    targets: Targets, logs: ConnectionLogs, kind: str, level: str
) -> None:
    verdict = passed(3, targets[kind], level)
    first, second, asking = verdict.runs
    assert first.connection_ids.isdisjoint(second.connection_ids)
    assert not asking.handles
    all_closed(logs.get(kind), verdict)


@at_process
def test_4_failure_cleanup(targets: Targets, logs: ConnectionLogs, kind: str, level: str) -> None:
    verdict = passed(4, targets[kind], level)
    assert [run.state for run in verdict.runs] == ["failed", "timed_out"]
    all_closed(logs.get(kind), verdict)


@at_process
def test_5_tenant_and_execution_isolation(
    targets: Targets, logs: ConnectionLogs, kind: str, level: str
) -> None:
    verdict = passed(5, targets[kind], level)
    assert [run.tenant for run in verdict.runs] == ["acme", "acme", "globex"]
    credentials = [set(run.credentials) for run in verdict.runs]
    assert all(credentials) == (kind in {"cache", "minted"})
    assert sum(map(len, credentials)) == len(set().union(*credentials))
    all_closed(logs.get(kind), verdict)
