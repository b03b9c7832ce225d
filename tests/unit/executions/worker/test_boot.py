"""executions.worker.boot: how long a worker may trust its lease, and from when it may judge others."""

import pytest

from executions.worker.boot import WorkerBoot
from executions.worker.clocks import Clocks

SELF_FENCE_SECONDS, LEASE_SECONDS = Clocks().self_fence, round(Clocks().lease)


class Clock:
    """A monotonic clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("executions.worker.boot.time.monotonic", found)
    return found


@pytest.fixture
def boot(clock: Clock) -> WorkerBoot:
    return WorkerBoot(
        node_name="w", capacity=1, backends={}, renewed_at=clock(), renewing_since=clock()
    )


def renew_each_second(boot: WorkerBoot, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        boot.renewed()


def test_a_lease_is_fresh_for_less_than_the_self_fence_time(boot: WorkerBoot, clock: Clock) -> None:
    clock.now += SELF_FENCE_SECONDS - 0.1
    assert boot.lease_is_fresh()
    clock.now += 0.1
    assert not boot.lease_is_fresh()
    boot.renewed()
    assert boot.lease_is_fresh()


def test_others_are_judged_only_after_a_lease_time_of_renewals(
    boot: WorkerBoot, clock: Clock
) -> None:
    renew_each_second(boot, clock, LEASE_SECONDS - 1)
    assert not boot.may_reap()
    renew_each_second(boot, clock, 1)
    assert boot.may_reap()


def test_a_gap_starts_the_count_anew(boot: WorkerBoot, clock: Clock) -> None:
    renew_each_second(boot, clock, LEASE_SECONDS)
    clock.now += SELF_FENCE_SECONDS
    assert not boot.may_reap()
    renew_each_second(boot, clock, LEASE_SECONDS)
    assert not boot.may_reap()
    renew_each_second(boot, clock, 1)
    assert boot.may_reap()


def test_each_boot_has_a_lane_of_its_own(boot: WorkerBoot) -> None:
    other = WorkerBoot(node_name="w", capacity=1, backends={})
    assert boot.lane != other.lane
