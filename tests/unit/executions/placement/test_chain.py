"""executions.placement.chain: every link goes to the lane, and carries ids only."""

from uuid import UUID

import pytest

from executions.blueprints.plan import plan
from executions.placement.chain import WINDOW, ChainSpec, links
from resources.placement import Placement

EXECUTION = UUID(int=7)
PLACEMENT = Placement(
    tenant_id=3, execution_id=EXECUTION, epoch=2, boot=UUID(int=8), worker="w@x", lane="lane.x"
)


def spec(*paths: str, first: str = "", express: bool = False) -> ChainSpec:
    steps = [{"key": path, "uses": "work", "with": {"x": "secret"}} for path in paths]
    return ChainSpec(
        placement=PLACEMENT,
        plan=plan({"name": "flow", "express": express, "steps": steps}),
        first=first or paths[0],
    )


def test_every_link_is_immutable_routed_named_and_of_ids_only() -> None:
    made = links(spec("one", "two"))
    assert [link.task for link in made] == ["executions.run_step"] * 2
    assert [link.args for link in made] == [(3, str(EXECUTION), 2, path) for path in ("one", "two")]
    assert all(link.immutable and not link.kwargs for link in made)
    assert [link.options for link in made] == [
        {"queue": "lane.x", "shadow": f"flow/{path}"} for path in ("one", "two")
    ]


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (WINDOW, WINDOW), (WINDOW + 1, WINDOW)])
def test_long_runs_go_in_windows(steps: int, expected: int) -> None:
    paths = [f"s{i}" for i in range(steps)]
    assert [link.args[3] for link in links(spec(*paths))] == paths[:expected]


def test_a_run_that_goes_on_begins_at_its_next_step() -> None:
    paths = [f"s{i}" for i in range(WINDOW + 3)]
    assert spec(*paths, first="s2").paths == paths[2 : 2 + WINDOW]
    assert spec(*paths, first=paths[-1]).paths == paths[-1:]


def test_on_the_express_lane_one_link_runs_all_that_is_left() -> None:
    (link,) = links(spec("one", "two", "three", first="two", express=True))
    assert link.args[3] == "two"
    assert link.options == {"queue": "lane.x", "shadow": "flow/two …"}
