"""The criteria of the five tests of NORP-006: a platform that does right passes, and every violation is found."""

from typing import Any

import pytest

from orchestrator.norp.criteria import (
    Evidence,
    Verdict,
    execution_isolation,
    failure_cleanup,
    pooling,
    reuse_rejection,
    tenant_and_execution,
)
from orchestrator.norp.observations import ObservedRun
from tests.unit.orchestrator.norp.made_up import (
    LEVEL,
    connection,
    execution,
    handle,
    observed_run,
    record,
    use,
)


def broken(evidence: tuple[Evidence, ...]) -> list[str]:
    """The demands that do not hold."""
    return [one.demand for one in evidence if not one.holds]


# --- 1
def test_two_runs_with_resources_of_their_own_are_isolated() -> None:
    evidence = execution_isolation(observed_run(1), observed_run(2), level=LEVEL)
    assert broken(evidence) == []
    assert evidence[-1].facts["connected_together_s"] == 1.0


SHARED_HANDLE: dict[str, Any] = {"uses": (use(1, connection_id="c2-1"),)}
SHARED_CONNECTION: dict[str, Any] = {
    "uses": (use(2, connection_id="c1-1"),),
    "connections": (connection(2, id="c1-1"),),
}


@pytest.mark.parametrize(
    ("second", "demand"),
    [
        (SHARED_HANDLE, "exec_1 resources ≠ exec_2 resources"),
        (
            {"credentials": (f"exec:{execution(1)}:1:scratch",)},
            "exec_1 resources ≠ exec_2 resources",
        ),
        ({"uses": (), "records": (), "credentials": ()}, "exec_1 resources ≠ exec_2 resources"),
        (SHARED_CONNECTION, "No shared connection or client detected"),
        ({"connections": ()}, "No shared connection or client detected"),
        ({"state": "failed", "code": "RESOURCE_ERROR"}, "2 of 2 runs succeed"),
        ({"level": "process"}, "2 of 2 runs succeed"),
    ],
)
def test_what_two_runs_share_or_nobody_saw_is_no_isolation(
    second: dict[str, Any], demand: str
) -> None:
    evidence = execution_isolation(observed_run(1), observed_run(2, **second), level=LEVEL)
    assert demand in broken(evidence)


# --- 2
STEPS = ("n1", "n2", "n3")


def pooled(**changes: Any) -> ObservedRun:
    return observed_run(1, **{"uses": tuple(use(1, step) for step in STEPS), **changes})


def test_three_nodes_with_one_connection_are_pooled() -> None:
    assert broken(pooling(pooled(), level=LEVEL)) == []


ONE = "Only 1 connection created (not 3)"
SAME = "All 3 nodes use same connection handle"
LIFETIME = "Connection lifetime = execution lifetime"
TAGGED = "Connection tagged with execution_id"


@pytest.mark.parametrize(
    ("changes", "demand"),
    [
        ({"connections": (connection(1, 1), connection(1, 2))}, ONE),
        ({"connections": ()}, ONE),
        ({"connections": (connection(1, 2),)}, ONE),  # the server saw another than the nodes used
        ({"uses": (use(1, "n1"), use(1, "n2"), use(2, "n3", "c1-1"))}, SAME),
        ({"uses": (use(1, "n1"),)}, SAME),
        ({"records": (record(1, "n2"),)}, LIFETIME),  # not opened by the first
        ({"records": (record(1, ended="killed"),)}, LIFETIME),
        ({"records": (record(1, ended=""),)}, LIFETIME),
        ({"records": ()}, LIFETIME),
        ({"gone_s": None}, LIFETIME),
        ({"left": ("exec:1",)}, LIFETIME),
        ({"connections": (connection(1, tag="somebody"),)}, TAGGED),
        ({"connections": (connection(1, tenant="globex"),)}, TAGGED),
    ],
)
def test_what_is_not_pooled_or_not_marked_is_seen(changes: dict[str, Any], demand: str) -> None:
    assert demand in broken(pooling(pooled(**changes), level=LEVEL))


# --- 3
REFUSED = {
    "state": "failed",
    "code": "POLICY_VIOLATION",
    "uses": (),
    "records": (),
    "connections": (),
}


def rejected(first: ObservedRun, second: ObservedRun, **asking: Any) -> list[str]:
    third = observed_run(3, **{**REFUSED, **asking})
    return broken(reuse_rejection(first, second, third, level=LEVEL))


def test_a_second_run_with_a_resource_of_its_own_reuses_nothing() -> None:
    assert rejected(observed_run(1), observed_run(2)) == []


@pytest.mark.parametrize(
    "first",
    [
        {"gone_s": None},
        {"left": (f"exec:{execution(1)}:1:scratch",)},
        {"records": (record(1, ended=""),)},
        {"connections": ()},
    ],
)
def test_a_resource_that_outlives_its_run_is_seen(first: dict[str, Any]) -> None:
    assert "R1 destroyed after W1" in rejected(observed_run(1, **first), observed_run(2))


def test_a_resource_that_comes_again_is_seen() -> None:
    again = rejected(observed_run(1), observed_run(2, uses=(use(1, connection_id="c2-1"),)))
    assert again == ["W2 creates new resource R2", "No cross-execution reuse"]
    assert "No cross-execution reuse" in rejected(
        observed_run(1), observed_run(2, **SHARED_CONNECTION)
    )


@pytest.mark.parametrize("asking", [{"state": "succeeded", "code": ""}, {"uses": (use(1),)}])
def test_a_run_that_is_given_anothers_handle_is_seen(asking: dict[str, Any]) -> None:
    demand = "A run that asks for R1 by its id is refused"
    assert rejected(observed_run(1), observed_run(2), **asking) == [demand]


# --- 4
def cleaned(failed: dict[str, Any], overdue: dict[str, Any]) -> list[str]:
    first = observed_run(1, **{"state": "failed", "code": "POLICY_VIOLATION", **failed})
    second = observed_run(
        2, **{"state": "timed_out", "records": (record(2, ended="killed"),), **overdue}
    )
    return broken(failure_cleanup(first, second, level=LEVEL))


def test_a_failed_run_that_leaves_nothing_is_clean() -> None:
    assert cleaned({}, {}) == []


@pytest.mark.parametrize(
    ("failed", "overdue", "demands"),
    [
        ({"state": "succeeded"}, {}, ["Execution marked as FAILED"]),
        ({}, {"state": "failed"}, ["Timeout ends the execution"]),
        (
            {"gone_s": None},
            {},
            ["Connection closed (node 2 raises)", "No leaked connections (node 2 raises)"],
        ),
        ({"left": ("iso_1",)}, {}, ["No leaked connections (node 2 raises)"]),
        ({"records": ()}, {}, ["No leaked connections (node 2 raises)"]),
        (
            {},
            {"records": (record(2, ended=""),)},
            ["No leaked connections (node 2 runs out of time)"],
        ),
    ],
)
def test_what_a_failed_run_leaves_is_seen(
    failed: dict[str, Any], overdue: dict[str, Any], demands: list[str]
) -> None:
    assert cleaned(failed, overdue) == demands


# --- 5
def apart(second: ObservedRun, other: ObservedRun | None) -> list[str]:
    return broken(tenant_and_execution(observed_run(1), second, other, level=LEVEL))


def test_runs_of_one_tenant_and_of_another_share_nothing() -> None:
    assert apart(observed_run(2), None) == []
    assert apart(observed_run(2), observed_run(3, tenant="globex")) == []


def test_without_another_tenant_nothing_is_said_of_one() -> None:
    evidence = tenant_and_execution(observed_run(1), observed_run(2), None, level=LEVEL)
    assert not any("another tenant" in one.demand for one in evidence)


def test_what_runs_of_one_tenant_share_is_seen() -> None:
    assert apart(observed_run(2, **SHARED_CONNECTION), None) == ["No sharing despite same tenant"]


def test_what_another_tenant_is_given_is_seen() -> None:
    other = observed_run(3, tenant="globex", credentials=observed_run(2).credentials)
    assert apart(observed_run(2), other) == ["No sharing with another tenant (NORP-002)"]


def test_a_connection_without_its_tenant_is_seen() -> None:
    unmarked = connection(2, tag=f"exec_{execution(2)}/1/")
    assert apart(observed_run(2, connections=(unmarked,)), None) == [
        "Resources tagged with both tenant_id and execution_id"
    ]


# --- verdicts
def test_a_verdict_holds_when_all_its_evidence_does() -> None:
    def verdict(*holds: bool) -> Verdict:
        evidence = tuple(Evidence(demand="d", holds=one) for one in holds)
        return Verdict(test=2, resource="cache", level=LEVEL, evidence=evidence)

    assert verdict(True, True).holds
    assert not verdict(True, False).holds
    assert not verdict().holds  # no evidence is no proof
    assert verdict(True).title == "Intra-Execution Pooling"


def test_a_failed_allocation_is_neither_allocated_nor_gone() -> None:
    run = observed_run(1, records=(record(1), record(1, ended="failed", resource_id=handle(9))))
    assert (run.allocated, run.disposed, run.is_clean) == (1, 1, True)
