"""Order and size of the benchmark."""

import pytest

from bench.plan import LEAST_RUNS, MOST_RUNS, Size, rotated, runs_for, turns

NAMES = ["a", "b", "c"]


def test_every_contender_is_first_once() -> None:
    assert [rotated(NAMES, turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated(NAMES, 1) == ["b", "c", "a"]
    assert rotated([], 1) == []


def test_turns_are_interleaved_and_complete() -> None:
    size = Size(rounds=2, steps=(1, 3), warm_up_runs=1, seconds=1.0, latencies=1)
    found = list(turns(NAMES, size))
    assert len(found) == len(set(found)) == 2 * 2 * 3
    assert found[:4] == [(0, 1, "a"), (0, 1, "b"), (0, 1, "c"), (0, 3, "b")]
    assert found[6] == (1, 1, "b")


@pytest.mark.parametrize(
    ("rate", "expected"), [(100.0, 300), (0.1, LEAST_RUNS), (1_000_000.0, MOST_RUNS)]
)
def test_runs_fill_the_wanted_time_within_bounds(rate: float, expected: int) -> None:
    assert runs_for(rate, 3.0) == expected
