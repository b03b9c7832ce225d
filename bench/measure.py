"""Warm up, then measure round after round: the drain of a backlog and single runs, one contender at a time.

Timing: minutes.
Model: sync.
Guarantee: best-effort; a contender that cannot be measured here is left out with a note.
Failure: bubble; an incomplete benchmark has no figures.
"""

from collections.abc import Callable, Mapping

from bench.contenders.base import Skipped
from bench.cpu import difference, spent
from bench.figures import Key, Sample
from bench.plan import Size, runs_for, turns
from bench.stage import Stage

Progress = Callable[[str], None]


def ready(stage: Stage, progress: Progress) -> tuple[list[str], list[str]]:
    """Return the contenders that can be measured, and notes on the others."""
    names, notes = [], []
    for name, driver in stage.drivers.items():
        try:
            driver.call("ready")
        except Skipped as skipped:
            notes.append(f"left out: {skipped}")
            progress(notes[-1])
        else:
            names.append(name)
    return names, notes


def warm_up(stage: Stage, names: list[str], size: Size, progress: Progress) -> dict[Key, int]:
    """Return how many runs make a drain of the wanted length; these first drains are not kept."""
    runs = {}
    for name in names:
        for steps in size.steps:
            for _ in range(2):  # the first drain also pays for what is created on first use
                stage.drivers[name].call("fill", steps=steps, runs=size.warm_up_runs)
                seconds = stage.drivers[name].call("drain")
            runs[name, steps] = runs_for(size.warm_up_runs / seconds, size.seconds)
        progress(f"{name} is warm")
    return runs


def measure(
    stage: Stage, names: list[str], size: Size, runs: Mapping[Key, int], progress: Progress
) -> list[Sample]:
    """Measure all that is planned, interleaved."""
    samples = []
    for number, steps, name in turns(names, size):
        found = sample(stage, name, steps, number, runs[name, steps], size.latencies)
        samples.append(found)
        progress(
            f"round {number + 1}/{size.rounds}, {steps:>2} steps, {name}: {found.rate:.1f} runs/s"
        )
    return samples


def sample(stage: Stage, name: str, steps: int, number: int, runs: int, latencies: int) -> Sample:
    """Measure one drain, then single runs."""
    driver, pids = stage.drivers[name], stage.supervisor.pids
    driver.call("fill", steps=steps, runs=runs)
    before = spent(pids)
    seconds = driver.call("drain")
    cpu = difference(before, spent(pids), runs)
    return Sample(
        contender=name,
        steps=steps,
        round=number,
        runs=runs,
        seconds=seconds,
        cpu_ms=cpu,
        latencies_ms=[driver.call("one", steps=steps) * 1000 for _ in range(latencies)],
    )
