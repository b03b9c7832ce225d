"""executions.blueprints.work: counted, and by a clock of its own where prices may be wrong."""

import pytest

from executions.blueprints.work import (
    CHECK_WORK,
    TooMuchWork,
    Work,
    WorkClock,
    check_budget,
    watched,
)

STRIDE = 100_000


class Clock:
    """The CPU time of a thread, as the test says."""

    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_more_than_the_limit_is_given_up_and_stays_so() -> None:
    work = Work(10)
    work.spend(10)
    for _ in range(2):
        with pytest.raises(TooMuchWork):
            work.spend(1)


def test_what_cannot_be_interrupted_does_not_begin_unless_it_fits() -> None:
    work = Work(10)
    work.refuse_over(10)
    work.spend(4)
    with pytest.raises(TooMuchWork):
        work.refuse_over(7)


def test_wrong_prices_do_not_exceed_the_time_by_more_than_a_look() -> None:
    clock = Clock()
    with watched(WorkClock(clock=clock, rest=lambda: None)):
        work = Work(100 * STRIDE, 0.5)
    done = 0
    with pytest.raises(TooMuchWork):
        for _ in range(100):
            work.spend(STRIDE + 1)  # counted as a millisecond
            clock.now += 0.1  # and takes a hundred
            done += 1
    assert done == 6
    with pytest.raises(TooMuchWork):
        work.spend(0)


def test_the_time_counts_from_the_first_look() -> None:
    clock = Clock()
    with watched(WorkClock(clock=clock, rest=lambda: None)):
        work = Work(100 * STRIDE, 0.5)
    clock.now += 100
    work.look()
    clock.now += 0.4
    work.look()


def test_other_threads_run_in_between() -> None:
    rests: list[int] = []
    with watched(WorkClock(clock=Clock(), rest=lambda: rests.append(1))):
        work = Work(100 * STRIDE)
    for _ in range(10 * STRIDE // 1000):
        work.spend(1000)
    assert 8 <= len(rests) <= 10


def test_blocks_inside_a_block_spend_from_one_budget() -> None:
    with check_budget() as outer:
        with check_budget() as inner:
            assert inner is outer
            inner.spend(CHECK_WORK)
        with check_budget() as again, pytest.raises(TooMuchWork):
            again.spend(1)
    with check_budget() as fresh:
        fresh.spend(1)
