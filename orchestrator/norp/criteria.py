"""The demands of the five tests of NORP-006, section 9.1, and the verdict on what was observed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.norp.observations import ObservedRun, overlap_s

TITLES = {
    1: "Execution Isolation",
    2: "Intra-Execution Pooling",
    3: "Cross-Execution Reuse Rejection",
    4: "Failure Cleanup",
    5: "Tenant + Execution Isolation",
}
NODES = 3  # of the pooling test


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One demand, its verdict, and the facts that show it."""

    demand: str
    holds: bool
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The outcome of one test, with one resource at one level."""

    test: int
    resource: str
    level: str
    evidence: tuple[Evidence, ...]
    runs: tuple[ObservedRun, ...] = ()

    @property
    def title(self) -> str:
        """The title in the specification."""
        return TITLES[self.test]

    @property
    def holds(self) -> bool:
        """True if every demand holds; no evidence proves nothing."""
        return bool(self.evidence) and all(one.holds for one in self.evidence)


def execution_isolation(
    first: ObservedRun, second: ObservedRun, *, level: str
) -> tuple[Evidence, ...]:
    """Judge test 1: two runs of the same workflow at the same time."""
    return (
        _ended("succeeded", (first, second), level),
        _evidence(
            "exec_1 resources ≠ exec_2 resources",
            _apart(first.resource_ids, second.resource_ids),
            exec_1=sorted(first.resource_ids),
            exec_2=sorted(second.resource_ids),
        ),
        _evidence(
            "No shared connection or client detected",
            _seen_apart(first, second),
            exec_1=sorted(first.connection_ids),
            exec_2=sorted(second.connection_ids),
            shared=sorted(first.connection_ids & second.connection_ids),
            connected_together_s=round(overlap_s(first, second), 3),
        ),
    )


def pooling(run: ObservedRun, *, level: str) -> tuple[Evidence, ...]:
    """Judge test 2: three nodes of one run with the same resource."""
    handles = [record for record in run.records if record.resource_id in run.handles]
    used_by = [use.step for use in run.uses]
    opened = handles[0] if handles else None
    return (
        _ended("succeeded", (run,), level),
        _evidence(
            "Only 1 connection created (not 3)",
            run.is_seen and len(run.connection_ids) == 1 and len(handles) == 1,
            server=sorted(run.connection_ids),
            ledger=[record.resource_id for record in handles],
        ),
        _evidence(
            "All 3 nodes use same connection handle",
            len(run.uses) == NODES and len(run.handles) == 1,
            handle=sorted(run.handles),
            nodes=used_by,
        ),
        _evidence(
            "Connection lifetime = execution lifetime",
            opened is not None
            and opened.step == used_by[0]
            and opened.ended == "disposed"
            and run.is_gone,
            opened_in=opened.step if opened else None,
            last_used_in=used_by[-1] if used_by else None,
            ended=opened.ended if opened else None,
            lived_s=opened.seconds if opened else None,
            gone_after_the_end_s=run.gone_s,
        ),
        _evidence("Connection tagged with execution_id", run.is_tagged, marks=_marks(run)),
    )


def reuse_rejection(
    first: ObservedRun, second: ObservedRun, asking: ObservedRun, *, level: str
) -> tuple[Evidence, ...]:
    """Judge test 3: one run after another; `asking` is a third, which asked for the first one's handle by its id."""
    return (
        _ended("succeeded", (first, second), level),
        _evidence(
            "R1 destroyed after W1",
            first.is_seen and first.is_gone and first.is_clean,
            R1=sorted(first.connection_ids),
            gone_after_the_end_s=first.gone_s,
            left=first.left,
            ledger=_ledger(first),
        ),
        _evidence(
            "W2 creates new resource R2",
            second.is_seen and bool(second.handles - first.resource_ids),
            R2=sorted(second.connection_ids),
            handle=sorted(second.handles),
        ),
        _evidence(
            "No cross-execution reuse",
            _apart(first.resource_ids, second.resource_ids) and _seen_apart(first, second),
            shared=sorted(
                (first.resource_ids & second.resource_ids)
                | (first.connection_ids & second.connection_ids)
            ),
        ),
        _evidence(
            "A run that asks for R1 by its id is refused",
            (asking.state, asking.code) == ("failed", "POLICY_VIOLATION")
            and not asking.handles & first.handles,
            execution=asking.name,
            state=asking.state,
            code=asking.code,
        ),
    )


def failure_cleanup(
    failed: ObservedRun, overdue: ObservedRun, *, level: str
) -> tuple[Evidence, ...]:
    """Judge test 4: a run whose second node raises, and one whose second node runs out of time."""
    evidence = [_ended("failed", (failed,), level, demand="Execution marked as FAILED")]
    evidence += _cleaned(failed, "node 2 raises")
    evidence.append(_ended("timed_out", (overdue,), level, demand="Timeout ends the execution"))
    evidence += _cleaned(overdue, "node 2 runs out of time")
    return tuple(evidence)


def tenant_and_execution(
    first: ObservedRun, second: ObservedRun, other: ObservedRun | None, *, level: str
) -> tuple[Evidence, ...]:
    """Judge test 5: two workflows of one tenant, and one of another tenant if there is one."""
    runs = (first, second, other) if other else (first, second)
    evidence = [
        _ended("succeeded", runs, level),
        _evidence(
            "Resources tagged with both tenant_id and execution_id",
            all(run.is_tagged for run in runs),
            marks=[mark for run in runs for mark in _marks(run)],
        ),
        _evidence(
            "No sharing despite same tenant",
            first.tenant == second.tenant
            and _apart(first.resource_ids, second.resource_ids)
            and _seen_apart(first, second),
            tenant=first.tenant,
            exec_1=sorted(first.connection_ids),
            exec_2=sorted(second.connection_ids),
            credentials=sorted({*first.credentials, *second.credentials}),
        ),
    ]
    if other:
        same = [run for run in (first, second) if not _apart_from(other, run)]
        evidence.append(
            _evidence(
                "No sharing with another tenant (NORP-002)",
                not same,
                tenant=other.tenant,
                exec_3=sorted(other.connection_ids),
                credentials=sorted(other.credentials),
            )
        )
    return tuple(evidence)


def _cleaned(run: ObservedRun, when: str) -> list[Evidence]:
    return [
        _evidence(
            f"Connection closed ({when})",
            run.is_seen and run.gone_s is not None,
            connection=sorted(run.connection_ids),
            gone_after_the_end_s=run.gone_s,
        ),
        _evidence(
            f"No leaked connections ({when})",
            run.is_seen and run.is_gone and run.is_clean,
            left=run.left,
            ledger=_ledger(run),
        ),
    ]


def _ended(state: str, runs: Sequence[ObservedRun], level: str, *, demand: str = "") -> Evidence:
    return _evidence(
        demand or f"{len(runs)} of {len(runs)} runs succeed",
        all((run.state, run.level) == (state, level) for run in runs),
        level=sorted({run.level for run in runs}),
        **{run.name: f"{run.state} {run.code}".strip() for run in runs},
    )


def _apart(first: frozenset[str], second: frozenset[str]) -> bool:
    """Say whether both have something, and nothing in common."""
    return bool(first) and bool(second) and not first & second


def _seen_apart(first: ObservedRun, second: ObservedRun) -> bool:
    seen = first.is_seen and second.is_seen
    return seen and _apart(first.connection_ids, second.connection_ids)


def _apart_from(other: ObservedRun, run: ObservedRun) -> bool:
    return (
        other.tenant != run.tenant
        and _apart(other.resource_ids, run.resource_ids)
        and _seen_apart(other, run)
    )


def _marks(run: ObservedRun) -> list[str]:
    return [connection.tag for connection in run.connections]


def _ledger(run: ObservedRun) -> str:
    how = ", ".join(sorted({record.ended or "open" for record in run.records})) or "empty"
    return f"{run.allocated} allocated, {run.disposed} gone ({how})"


def _evidence(demand: str, holds: bool, **facts: Any) -> Evidence:  # noqa: FBT001 - reads as a sentence
    return Evidence(demand=demand, holds=holds, facts=facts)
