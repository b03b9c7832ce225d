"""The contenders of the benchmark of levels."""

import pytest

from bench.levels.contenders import (
    BARE,
    HOLD,
    HOLD_SECONDS,
    STEPS,
    Runs,
    document,
    kind_of,
    names,
    planned,
    tenants_of,
)
from bench.plan import Size
from executions.blueprints.schema.document import check


def test_a_name_tells_level_and_tenants() -> None:
    assert Runs.named("process-40") == Runs("process", 40)
    assert Runs.named("process-40").name == "process-40"
    assert (kind_of("shared-300"), tenants_of("shared-300")) == ("shared", 300)
    assert [(kind_of(name), tenants_of(name)) for name in BARE] == [(name, 1) for name in BARE]


def test_each_level_is_measured_with_each_number_of_tenants() -> None:
    assert names([2, 40]) == ["process-2", "process-40", "shared-2", "shared-40", *BARE]


def test_without_a_platform_there_is_one_step() -> None:
    size = Size(rounds=2, steps=STEPS, warm_up_runs=1, seconds=1.0, latencies=1)
    found = list(planned(["shared-2", *BARE], size))
    assert {(steps, name) for _, steps, name in found} == {
        (1, "shared-2"), (3, "shared-2"), *((1, name) for name in BARE)
    }  # fmt: skip
    assert len(found) == 2 * 4


@pytest.mark.parametrize("steps", [*STEPS, HOLD])
def test_blueprints_are_valid_and_choose_their_level(steps: int) -> None:
    found = check(document("process", steps))
    assert found["isolation"] == "process"
    assert len(found["steps"]) == max(steps, 1)


def test_only_the_held_step_takes_its_time() -> None:
    assert document("shared", HOLD)["steps"][0]["with"] == {"hold_s": HOLD_SECONDS}
    assert document("shared", 1)["steps"][0]["with"] == {}
