"""Counts of one process are bounded; what they count is tested beside those in Redis."""

from foundation.backoff import CountedSubject, doubling
from foundation.failure_counts import FailureCounts

BACKOFF = doubling(free=1, longest=60_000, memory=60_000)


def test_no_more_subjects_are_kept_than_allowed() -> None:
    counts = FailureCounts(clock=lambda: 0.0, most=3)
    subjects = [CountedSubject(name=str(number), backoff=BACKOFF) for number in range(10)]
    for subject in subjects:
        counts.count([subject])
    assert len(counts._kept) == 3
    assert counts.count([subjects[-1]]).failures == (2,)
    assert counts.count([subjects[0]]).failures == (1,)
