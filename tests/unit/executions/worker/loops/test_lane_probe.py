"""Whether a worker hears its lane: from calls and echoes to an answer."""

import pytest

from executions.worker.loops.lane_probe import DEAF_SECONDS, UNSURE_SECONDS, LaneProbe


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
def echo(clock: Clock) -> LaneProbe:
    return LaneProbe(clock)


def test_who_has_not_called_is_sure(echo: LaneProbe, clock: Clock) -> None:
    clock.now += 1000
    assert echo.is_sure
    assert echo.silent_seconds == 0


def test_silence_is_counted_from_the_first_call_that_nobody_answered(
    echo: LaneProbe, clock: Clock
) -> None:
    echo.called()
    clock.now += UNSURE_SECONDS / 2
    echo.called()
    sure = [echo.is_sure]
    clock.now += UNSURE_SECONDS / 2
    sure.append(echo.is_sure)
    assert sure == [True, False]
    clock.now += DEAF_SECONDS
    assert echo.silent_seconds >= DEAF_SECONDS


def test_one_echo_is_enough(echo: LaneProbe, clock: Clock) -> None:
    echo.called()
    clock.now += DEAF_SECONDS
    echo.heard()
    assert echo.is_sure
    assert echo.silent_seconds == 0


def test_while_redis_is_away_nothing_is_placed_and_nothing_is_counted(
    echo: LaneProbe, clock: Clock
) -> None:
    echo.called()
    clock.now += DEAF_SECONDS - 1
    echo.is_away()
    clock.now += DEAF_SECONDS
    sure = [echo.is_sure]
    assert echo.silent_seconds == 0
    echo.called()
    sure.append(echo.is_sure)
    assert sure == [False, True]
    clock.now += DEAF_SECONDS - 1
    assert echo.silent_seconds < DEAF_SECONDS
