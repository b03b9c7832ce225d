"""The five tests, run: which probes each needs, and in which order.

Timing: request-time. Model: sync; runs that have to be there at the same time are submitted one right after the other.
Guarantee: as the services'. Failure: bubble; what cannot be run is NotRun, what does not hold is a verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.norp import criteria, probes
from orchestrator.norp.criteria import TITLES, Evidence, Verdict
from orchestrator.norp.observations import overlap_s
from orchestrator.norp.observed_servers import Opening
from orchestrator.norp.probe_runner import Stand
from orchestrator.norp.probes import ProbedDefinition
from orchestrator.norp.watcher import watching

RUN_SECONDS = 60.0
TOGETHER_TRIES = 3  # a busy worker may run two runs one after the other, which shows less
Report = tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is tested: a definition, how to look at its far side, and another tenant's definition of the same."""

    name: str
    subject: ProbedDefinition
    opening: Callable[[], Opening]
    other: ProbedDefinition | None = None


def run_tests(
    target: Target,
    level: str,
    *,
    requested_by: str,
    tests: Sequence[int] = tuple(TITLES),
    on_start: Callable[[int], None] = lambda _: None,
    run_seconds: float = RUN_SECONDS,
) -> Iterator[Verdict]:
    """Run these tests one after the other; each verdict as soon as it is there."""
    with watching(target.opening()) as watcher:
        stand = Stand(watcher, level=level, requested_by=requested_by, run_seconds=run_seconds)
        for test in tests:
            on_start(test)
            stand.seen.clear()
            evidence = _TESTS[test](stand, target)
            yield Verdict(
                test=test,
                resource=target.name,
                level=level,
                evidence=evidence,
                runs=tuple(stand.seen),
            )


def _execution_isolation(stand: Stand, target: Target) -> Report:
    document = probes.one_node(target.subject, stand.level)
    for _ in range(TOGETHER_TRIES):
        started = [stand.start(target.subject, document) for _ in range(2)]
        first, second = map(stand.finish, started)
        if overlap_s(first, second):
            break
    return criteria.execution_isolation(first, second, level=stand.level)


def _pooling(stand: Stand, target: Target) -> Report:
    run = stand.run(target.subject, probes.several_nodes(target.subject, stand.level))
    return criteria.pooling(run, level=stand.level)


def _reuse_rejection(stand: Stand, target: Target) -> Report:
    subject, level = target.subject, stand.level
    first = stand.run(subject, probes.one_node(subject, level))
    second = stand.run(subject, probes.one_node(subject, level))
    wanted = next(iter(sorted(first.handles)), "none")
    asking = stand.run(subject, probes.asking(subject, level), resource=wanted)
    return criteria.reuse_rejection(first, second, asking, level=level)


def _failure_cleanup(stand: Stand, target: Target) -> Report:
    subject, level = target.subject, stand.level
    documents = (probes.failing(subject, level), probes.overdue(subject, level))
    started = [stand.start(subject, document) for document in documents]
    failed, overdue = map(stand.finish, started)
    return criteria.failure_cleanup(failed, overdue, level=level)


def _tenant_and_execution(stand: Stand, target: Target) -> Report:
    pairs = [(target.subject, "one"), (target.subject, "another")]
    if target.other is not None:
        pairs.append((target.other, "one"))
    started = [
        stand.start(subject, probes.one_node(subject, stand.level, name)) for subject, name in pairs
    ]
    first, second, *others = map(stand.finish, started)
    other = others[0] if others else None
    return criteria.tenant_and_execution(first, second, other, level=stand.level)


_TESTS: dict[int, Callable[[Stand, Target], Report]] = {
    1: _execution_isolation,
    2: _pooling,
    3: _reuse_rejection,
    4: _failure_cleanup,
    5: _tenant_and_execution,
}
