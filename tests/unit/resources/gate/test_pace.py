"""resources.gate.pace: frames cost their reader's time, bytes do not."""

import pytest

from resources.gate.pace import FramePace

CHUNK = 16 * 1024


def test_frames_full_of_bytes_are_free() -> None:
    pace = FramePace(0.0)
    assert [pace.pause(8, 8 * CHUNK, now=0.0) for _ in range(10_000)] == [0.0] * 10_000


def test_so_many_small_ones_may_come_at_once() -> None:
    pace = FramePace(0.0)
    assert pace.pause(5000, 0, now=0.0) == 0
    assert pace.pause(10_000, 0, now=0.0) == pytest.approx(1.0)


def test_a_pause_is_as_long_as_it_takes_to_earn_what_was_used() -> None:
    pace = FramePace(0.0)
    pause = pace.pause(15_000, 0, now=0.0)
    assert pause == pytest.approx(1.0)
    assert pace.pause(0, 0, now=pause) == pytest.approx(0.0)
    assert pace.pause(100, 0, now=pause) == pytest.approx(0.01)


def test_a_run_that_was_silent_has_no_more_than_at_its_start() -> None:
    pace = FramePace(0.0)
    assert pace.pause(5000, 0, now=1000.0) == 0
    assert pace.pause(1, 0, now=1000.0) > 0


def test_a_connection_costs_as_much_as_several_frames() -> None:
    pace = FramePace(0.0)
    for _ in range(250):
        pace.charge_dial()
    assert pace.pause(0, 0, now=0.0) == 0
    pace.charge_dial()
    assert pace.pause(0, 0, now=0.0) == pytest.approx(0.002)
