"""Round after round: each chain with the context and without, one after the other.

Timing: minutes. Model: sync. Guarantee: best-effort. Failure: bubble; figures of half a benchmark are none.
"""

from collections.abc import Mapping

from bench.context.chains import STEPS, turns
from bench.context.figures import Measured
from bench.context.stage import ContextStage
from bench.context.visits import Record
from bench.figures import Key
from bench.measure import Say, sample
from bench.plan import Size


def measure(stage: ContextStage, size: Size, runs: Mapping[Key, int], say: Say) -> list[Measured]:
    """Everything that was planned."""
    measured = []
    for number, contender in turns(size.rounds):
        name, record = contender.name, Record(stage.customer.log)
        found = sample(stage, name, STEPS, number, runs[name, STEPS], size.latencies)
        measured.append(Measured(contender=contender, sample=found, visits=record.visits()))
        say(f"round {number + 1}/{size.rounds}, {name}: {found.rate:.1f} runs/s")
    return measured
