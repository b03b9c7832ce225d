"""Warm up, then measure round after round: the drain of a backlog, single starts, and RAM.

Timing: minutes.
Model: sync; one contender at a time.
Guarantee: best-effort.
Failure: bubble; an incomplete benchmark has no figures.
"""

from collections.abc import Mapping

from bench.cpu import difference, spent
from bench.figures import Key, Sample
from bench.levels.contenders import HOLD, kind_of, planned, tenants_of
from bench.levels.figures import Measured
from bench.levels.ram import PrivateRam
from bench.levels.stage import LevelStage
from bench.levels.starts import Starts
from bench.measure import Progress
from bench.plan import Size, runs_for


def warm_up(stage: LevelStage, names: list[str], size: Size, progress: Progress) -> dict[Key, int]:
    """Return how many runs make a drain of the wanted length, one of each tenant at least."""
    runs = {}
    for name in names:
        least = max(size.warm_up_runs, tenants_of(name))
        for steps in size.steps:
            for _ in range(2):  # the first drain also pays for what is created on first use
                stage.drivers[name].call("fill", steps=steps, runs=least)
                seconds = stage.drivers[name].call("drain")
            runs[name, steps] = max(runs_for(least / seconds, size.seconds), tenants_of(name))
        progress(f"{name} is warm: {least / seconds:.0f} runs/s")
    return runs


def measure(
    stage: LevelStage, names: list[str], size: Size, runs: Mapping[Key, int], progress: Progress
) -> list[Measured]:
    """Measure all that is planned, interleaved."""
    measured = []
    for number, steps, name in planned(names, size):
        found = _measure_one(stage, name, steps, number, runs[name, steps], size.latencies)
        measured.append(found)
        rate, cpu = found.sample.rate, sum(found.sample.cpu_ms.values())
        progress(
            f"round {number + 1}/{size.rounds}, {steps} steps, {name}: {rate:.1f} runs/s, {cpu:.1f} ms CPU"
        )
    return measured


def _measure_one(
    stage: LevelStage, name: str, steps: int, number: int, runs: int, latencies: int
) -> Measured:
    driver, pids = stage.drivers[name], stage.pids(name)
    driver.call("fill", steps=steps, runs=runs)
    starts, before = Starts(stage.starts), spent(pids)
    seconds = driver.call("drain")
    cpu_ms, loaded = difference(before, spent(pids), runs), starts.found()
    cpu_ms["cgroups"] = sum(start.sandbox_ms for start in loaded) / runs
    starts = Starts(stage.starts)
    alone = [driver.call("one", steps=steps) * 1000 for _ in range(latencies)]
    return Measured(
        sample=Sample(
            contender=name,
            steps=steps,
            round=number,
            runs=runs,
            seconds=seconds,
            cpu_ms=cpu_ms,
            latencies_ms=alone,
        ),
        starts_ms=[start.ms for start in starts.found()],
        loaded_starts_ms=[start.ms for start in loaded],
        ram_mb=_ram_mb(stage, name),
    )


def _ram_mb(stage: LevelStage, name: str) -> float | None:
    """Measure the private RAM of one run while its step takes its time."""
    sandboxed = kind_of(name) in {"process", "sandboxes"}
    ram = PrivateRam(list(stage.pids(name).values()), sandboxed=sandboxed)
    with ram.watching():
        stage.drivers[name].call("one", steps=HOLD)
    return ram.mb
