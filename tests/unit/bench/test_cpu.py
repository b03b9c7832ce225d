"""CPU time by process."""

import os

from bench.cpu import difference, spent


def test_time_is_per_run_and_added_up_by_kind() -> None:
    before = {"postgres": 1.0, "isolane-worker-0": 2.0, "isolane-worker-1": 2.0}
    after = {"postgres": 1.5, "isolane-worker-0": 3.0, "isolane-worker-1": 2.5}
    assert difference(before, after, runs=100) == {"postgres": 5.0, "isolane-worker": 15.0}


def test_runners_are_counted_apart_from_their_worker() -> None:
    found = spent({"isolane-worker-0": os.getpid(), "postgres": os.getpid()})
    assert set(found) == {"isolane-worker-0", "isolane-runners-0", "postgres"}
    assert found["isolane-worker-0"] > 0
