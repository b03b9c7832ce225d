"""Measure round after round: each chain with the context and without it, one after the other.

Timing: minutes.
Model: sync.
Guarantee: best-effort.
Failure: bubble; an incomplete benchmark has no figures.
"""

from collections.abc import Mapping

from bench.context.chains import STEPS, turns
from bench.context.figures import Measured
from bench.context.stage import ContextStage
from bench.context.visits import Record
from bench.figures import Key
from bench.measure import Progress, sample
from bench.plan import Size


def measure(
    stage: ContextStage, size: Size, runs: Mapping[Key, int], progress: Progress
) -> list[Measured]:
    """Measure all that is planned."""
    measured = []
    for number, contender in turns(size.rounds):
        name, record = contender.name, Record(stage.customer.log)
        found = sample(stage, name, STEPS, number, runs[name, STEPS], size.latencies)
        measured.append(Measured(contender=contender, sample=found, visits=record.visits()))
        progress(f"round {number + 1}/{size.rounds}, {name}: {found.rate:.1f} runs/s")
    return measured
