"""All rows of one run together. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from executions.blueprints.plan import Plan
from trials.chaos.rows import EventRow, Evidence, RunRow, StepRow, Told

Row = TypeVar("Row", StepRow, EventRow, Told)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a verdict on one run is made from."""

    run: RunRow
    plan: Plan
    steps: Mapping[str, StepRow]  # by their paths
    events: Sequence[EventRow]
    starts: Sequence[Told]
    dones: Sequence[Told]
    effects: Mapping[str, int]  # by the paths of their steps, how many
    was_cancelled: bool  # whether it was asked to end
    killed: Set[int]  # the children that the weather has killed

    def began(self, path: str) -> list[Told]:
        """The attempts of a step of which the judge has heard, in their order."""
        return sorted(_of(self.starts, path), key=lambda told: told.order)

    def done(self, path: str) -> list[Told]:
        """Those of which it has heard that they were done."""
        return _of(self.dones, path)

    def cut(self, path: str) -> list[Told]:
        """Those that neither were done nor were to fail: somebody or something has ended them."""
        done, fails = {told.order for told in self.done(path)}, self.fails(path)
        return [
            told
            for told in self.began(path)
            if told.order not in done and (told.role == "recover" or told.attempt > fails)
        ]

    def fails(self, path: str) -> int:
        """How many attempts of a step are to fail."""
        return int(self.plan.step(path).parameters.get("fails", 0))

    def claims(self, path: str) -> set[tuple[int, int]]:
        """Epoch and attempt of each claim on a step."""
        return {
            (int(event.data["epoch"]), int(event.data["attempt"]))
            for event in self.events
            if event.kind == "step.started" and event.step == path
        }


def cases(evidence: Evidence) -> Iterator[Case]:
    """One for each run."""
    steps, events = _grouped(evidence.steps), _grouped(evidence.events)
    starts, dones = _grouped(evidence.heard.starts), _grouped(evidence.heard.dones)
    effects: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    for effect in evidence.heard.effects:
        effects[effect.execution][effect.step] += 1
    for run in evidence.runs:
        yield Case(
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


def _of(told: Sequence[Told], path: str) -> list[Told]:
    return [one for one in told if one.step == path]
