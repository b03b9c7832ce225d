"""executions.chain: every link goes to the lane, and carries ids only."""

from uuid import UUID

import pytest

from executions.chain import WINDOW, ChainSpec, links, publish

EXECUTION = UUID(int=7)


def spec(*paths: str) -> ChainSpec:
    return ChainSpec(
        tenant_id=3, execution_id=EXECUTION, epoch=2, lane="lane.x", blueprint="flow", paths=paths
    )


def test_every_link_is_immutable_routed_named_and_of_ids_only() -> None:
    made = links(spec("one", "two"))
    assert [link.task for link in made] == ["executions.run_step"] * 2
    assert [link.args for link in made] == [(3, str(EXECUTION), 2, path) for path in ("one", "two")]
    assert all(link.immutable and not link.kwargs for link in made)
    assert [link.options for link in made] == [
        {"queue": "lane.x", "shadow": f"flow/{path}"} for path in ("one", "two")
    ]


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (WINDOW, 10), (WINDOW + 1, 10)])
def test_long_runs_go_in_windows(steps: int, expected: int) -> None:
    paths = [f"s{i}" for i in range(steps)]
    assert [link.args[3] for link in links(spec(*paths))] == paths[:expected]


def test_nothing_left_is_nothing_sent() -> None:
    publish(spec())
