"""The evidence on one run. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from executions.blueprints.plan import Plan
from trials.chaos.rows import EventRow, Evidence, Observation, RunRow, StepRow

Row = TypeVar("Row", StepRow, EventRow, Observation)


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """All rows of one run, from the platform and from the observer."""

    run: RunRow
    plan: Plan
    steps: Mapping[str, StepRow]  # by path
    events: Sequence[EventRow]
    starts: Sequence[Observation]
    dones: Sequence[Observation]
    effects: Mapping[str, int]  # number of effects by path
    was_cancelled: bool  # a cancellation was requested
    killed: Set[int]  # numbers of children killed by a fault, of all runs

    def starts_of(self, path: str) -> list[Observation]:
        """Return the observed starts of a step, in the order of its attempts."""
        return sorted(_of(self.starts, path), key=lambda start: start.order)

    def dones_of(self, path: str) -> list[Observation]:
        """Return the attempts of a step that were observed as done."""
        return _of(self.dones, path)

    def interrupted(self, path: str) -> list[Observation]:
        """Return the attempts that neither were done nor failed as planned."""
        done, fails = {one.order for one in self.dones_of(path)}, self.planned_failures(path)
        return [
            start
            for start in self.starts_of(path)
            if start.order not in done and (start.role == "recover" or start.attempt > fails)
        ]

    def planned_failures(self, path: str) -> int:
        """Return how many attempts of a step are planned to fail."""
        return int(self.plan.step(path).parameters.get("fails", 0))

    def claims(self, path: str) -> set[tuple[int, int]]:
        """Return epoch and attempt of each claim on a step."""
        return {
            (int(event.data["epoch"]), int(event.data["attempt"]))
            for event in self.events
            if event.kind == "step.started" and event.step == path
        }


def by_run(evidence: Evidence) -> Iterator[RunEvidence]:
    """Group the evidence by run."""
    steps, events = _grouped(evidence.steps), _grouped(evidence.events)
    starts, dones = _grouped(evidence.observed.starts), _grouped(evidence.observed.dones)
    effects: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    for effect in evidence.observed.effects:
        effects[effect.execution][effect.step] += 1
    for run in evidence.runs:
        yield RunEvidence(
            run=run,
            plan=evidence.plans[run.blueprint],
            steps={row.path: row for row in steps[run.id]},
            events=events[run.id],
            starts=starts[run.id],
            dones=dones[run.id],
            effects=effects[run.id],
            was_cancelled=run.id in evidence.cancelled,
            killed=evidence.killed,
        )


def _grouped(rows: Iterable[Row]) -> "defaultdict[UUID, list[Row]]":
    found: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.execution].append(row)
    return found


def _of(observations: Sequence[Observation], path: str) -> list[Observation]:
    return [one for one in observations if one.step == path]
