"""Limits of a run: of two the stricter one counts."""

from isolane.limits import RunLimits


def test_the_stricter_counts_for_each_limit_alone() -> None:
    one = RunLimits(cpu=2.0, ram_mb=256, open_files=64)
    other = RunLimits(cpu=0.5, ram_mb=512, processes=16)
    both = RunLimits(cpu=0.5, ram_mb=256, processes=16, open_files=64)
    assert one.stricter(other) == other.stricter(one) == both


def test_no_limit_is_never_stricter() -> None:
    limits = RunLimits(cpu=1, disk_mb=5)
    assert limits.stricter(RunLimits()) == limits == RunLimits().stricter(limits)
    assert RunLimits().stricter(RunLimits()) == RunLimits()
