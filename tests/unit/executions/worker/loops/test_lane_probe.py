"""The health of a worker's lane, from the probes that were sent and received."""

import pytest

from executions.worker.clocks import Clocks
from executions.worker.loops.lane_probe import LaneProbe

UNSURE, UNREACHABLE = Clocks().unsure, Clocks().unreachable


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def probe(clock: Clock) -> LaneProbe:
    return LaneProbe(unsure=UNSURE, now=clock)


def test_a_lane_that_was_not_probed_is_healthy(probe: LaneProbe, clock: Clock) -> None:
    clock.now += 1000
    assert probe.is_healthy
    assert probe.unanswered_seconds == 0


def test_silence_is_counted_from_the_first_probe_that_did_not_come_back(
    probe: LaneProbe, clock: Clock
) -> None:
    probe.sent()
    clock.now += UNSURE / 2
    probe.sent()
    healthy = [probe.is_healthy]
    clock.now += UNSURE / 2
    healthy.append(probe.is_healthy)
    assert healthy == [True, False]
    clock.now += UNREACHABLE
    assert probe.unanswered_seconds >= UNREACHABLE


def test_one_probe_that_comes_back_is_enough(probe: LaneProbe, clock: Clock) -> None:
    probe.sent()
    clock.now += UNREACHABLE
    probe.received()
    assert probe.is_healthy
    assert probe.unanswered_seconds == 0


def test_while_redis_is_away_nothing_is_placed_and_nothing_is_counted(
    probe: LaneProbe, clock: Clock
) -> None:
    probe.sent()
    clock.now += UNREACHABLE - 1
    probe.broker_unavailable()
    clock.now += UNREACHABLE
    healthy = [probe.is_healthy]
    assert probe.unanswered_seconds == 0
    probe.sent()
    healthy.append(probe.is_healthy)
    assert healthy == [False, True]
    clock.now += UNREACHABLE - 1
    assert probe.unanswered_seconds < UNREACHABLE
