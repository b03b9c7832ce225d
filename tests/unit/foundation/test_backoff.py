"""Waits double up to a limit."""

from foundation.backoff import SECOND, counting_only, doubling, seconds


def test_waits_double_after_the_free_ones_up_to_the_longest() -> None:
    backoff = doubling(free=2, longest=10 * SECOND, memory=1)
    waits = [backoff.wait_after(failures) // SECOND for failures in range(1, 9)]
    assert waits == [0, 0, 1, 2, 4, 8, 10, 10]
    assert backoff.longest == 10 * SECOND


def test_counting_alone_brings_no_wait() -> None:
    assert [counting_only(memory=1).wait_after(failures) for failures in (1, 99)] == [0, 0]


def test_a_wait_is_said_in_whole_seconds_that_are_enough() -> None:
    assert [seconds(wait) for wait in (1, 1_000, 1_001)] == [1, 1, 2]
