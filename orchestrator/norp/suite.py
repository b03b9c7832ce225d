"""The run of the five tests: the probes that each needs, and their order.

Timing: request-time.
Model: sync; runs that must be active at the same time are submitted one right after the other.
Guarantee: as the services'.
Failure: bubble; what cannot be run is NotRun, what does not hold is a verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.norp import criteria, probes
from orchestrator.norp.criteria import TITLES, Evidence, Verdict
from orchestrator.norp.observations import overlap_s
from orchestrator.norp.observed_servers import ServerContext
from orchestrator.norp.probe_runner import ProbeRunner
from orchestrator.norp.probes import ProbedDefinition
from orchestrator.norp.watcher import watching

RUN_SECONDS = 60.0
TOGETHER_TRIES = 3  # a busy worker may run two runs one after the other, which shows less
Report = tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A definition to test, how to observe its remote server, and another tenant's definition of the same."""

    name: str
    subject: ProbedDefinition
    observe: Callable[[], ServerContext]
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
    """Run these tests one after the other; yield each verdict as soon as it is known."""
    with watching(target.observe()) as watcher:
        runner = ProbeRunner(
            watcher, level=level, requested_by=requested_by, run_seconds=run_seconds
        )
        for test in tests:
            on_start(test)
            runner.observed.clear()
            evidence = _TESTS[test](runner, target)
            yield Verdict(
                test=test,
                resource=target.name,
                level=level,
                evidence=evidence,
                runs=tuple(runner.observed),
            )


def _execution_isolation(runner: ProbeRunner, target: Target) -> Report:
    document = probes.one_node(target.subject, runner.level)
    for _ in range(TOGETHER_TRIES):
        started = [runner.start(target.subject, document) for _ in range(2)]
        first, second = map(runner.finish, started)
        if overlap_s(first, second):
            break
    return criteria.execution_isolation(first, second, level=runner.level)


def _pooling(runner: ProbeRunner, target: Target) -> Report:
    run = runner.run(target.subject, probes.several_nodes(target.subject, runner.level))
    return criteria.pooling(run, level=runner.level)


def _reuse_rejection(runner: ProbeRunner, target: Target) -> Report:
    subject, level = target.subject, runner.level
    first = runner.run(subject, probes.one_node(subject, level))
    second = runner.run(subject, probes.one_node(subject, level))
    wanted = next(iter(sorted(first.handles)), "none")
    asking = runner.run(subject, probes.asking(subject, level), resource=wanted)
    return criteria.reuse_rejection(first, second, asking, level=level)


def _failure_cleanup(runner: ProbeRunner, target: Target) -> Report:
    subject, level = target.subject, runner.level
    documents = (probes.failing(subject, level), probes.overdue(subject, level))
    started = [runner.start(subject, document) for document in documents]
    failed, overdue = map(runner.finish, started)
    return criteria.failure_cleanup(failed, overdue, level=level)


def _tenant_and_execution(runner: ProbeRunner, target: Target) -> Report:
    pairs = [(target.subject, "one"), (target.subject, "another")]
    if target.other is not None:
        pairs.append((target.other, "one"))
    started = [
        runner.start(subject, probes.one_node(subject, runner.level, name))
        for subject, name in pairs
    ]
    first, second, *others = map(runner.finish, started)
    other = others[0] if others else None
    return criteria.tenant_and_execution(first, second, other, level=runner.level)


_TESTS: dict[int, Callable[[ProbeRunner, Target], Report]] = {
    1: _execution_isolation,
    2: _pooling,
    3: _reuse_rejection,
    4: _failure_cleanup,
    5: _tenant_and_execution,
}
