"""Rows and aims of the benchmark of levels."""

from collections.abc import Sequence

from bench.levels.figures import Measured, rows, verdicts
from tests.unit.bench.test_figures import sample


def measured(
    name: str, *, number: int = 0, rate: float, steps: int = 1, start_ms: float = 10.0
) -> Measured:
    return Measured(
        sample=sample(name, number=number, rate=rate, steps=steps),
        starts_ms=[start_ms, start_ms, start_ms * 3],
        loaded_starts_ms=[start_ms * 2],
        ram_mb=6.0,
    )


ALL = [
    measured("shared-300", rate=60),
    measured("shared-2", rate=100),
    measured("sandboxes", rate=80),
    measured("process-300", rate=48),
    measured("process-2", rate=50, start_ms=50.0),
    measured("process-2", rate=500, steps=3),
]


def unmet(found: Sequence[Measured]) -> list[str]:
    return [verdict.aim for verdict in verdicts(found) if not verdict.is_met]


def test_rows_are_ordered_by_steps_kind_and_tenants() -> None:
    assert [(row.steps, row.kind, row.tenants) for row in rows(ALL)] == [
        (1, "process", 2), (1, "process", 300), (1, "shared", 2), (1, "shared", 300), (1, "sandboxes", 1),
        (3, "process", 2),
    ]  # fmt: skip


def test_ratios_are_to_the_fewest_tenants_and_to_bare_sandboxes() -> None:
    found = {(row.kind, row.tenants, row.steps): row for row in rows(ALL)}
    assert found["shared", 300, 1].of_few == 0.6
    assert found["process", 300, 1].of_few == 0.96
    assert found["process", 300, 1].of_sandboxes == 0.6
    assert found["sandboxes", 1, 1].of_few is None


def test_starts_are_medians_and_a_percentile() -> None:
    row = rows(
        [measured("process-2", rate=50), measured("process-2", number=1, rate=50, start_ms=20)]
    )[0]
    assert (row.start_ms.median, row.start_ms.least, row.start_ms.most) == (15.0, 10.0, 20.0)
    assert (row.start_p95_ms, row.loaded_start_ms) == (60.0, 30.0)
    assert (row.cpu_ms, row.ram_mb) == (3.0, 6.0)


def test_what_misses_an_aim_is_named() -> None:
    assert unmet(ALL) == [
        "shared, 1 steps: 300 tenants to the fewest",
        "process, 2 tenants: start p50 in ms",
    ]


def test_a_low_rate_is_held_against_bare_sandboxes() -> None:
    slow = [measured("process-2", rate=30), measured("sandboxes", rate=80)]
    assert unmet(slow) == ["process, 2 tenants: of bare sandboxes"]
    assert unmet([measured("process-2", rate=120), measured("sandboxes", rate=900)]) == []
    assert unmet([measured("process-2", rate=30)]) == ["process, 2 tenants: runs/s"]
