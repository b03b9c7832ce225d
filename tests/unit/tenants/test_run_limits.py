"""Limits of a run in a quota: known names, numbers in their ranges."""

import pytest

from executions.blueprints.durations import RUN
from foundation.errors import InvalidInput
from foundation.limit_bounds import LIMIT_BOUNDS
from tenants.run_limits import QUOTA_LIMITS, check_limits


def test_a_quota_has_all_limits_and_the_time_of_a_run() -> None:
    assert set(QUOTA_LIMITS) - set(LIMIT_BOUNDS) == {"max_run_minutes"}
    check_limits({name: bounds.least for name, bounds in QUOTA_LIMITS.items()})
    check_limits({name: bounds.most for name, bounds in QUOTA_LIMITS.items()})
    check_limits(dict.fromkeys(QUOTA_LIMITS))


def test_the_longest_time_is_that_of_a_blueprint() -> None:
    assert QUOTA_LIMITS["max_run_minutes"].most * 60 == RUN.most


@pytest.mark.parametrize("name", sorted(QUOTA_LIMITS))
def test_what_is_out_of_range_is_named_with_the_way_out(name: str) -> None:
    wrong = QUOTA_LIMITS[name].most + 1
    with pytest.raises(InvalidInput) as refused:
        check_limits({name: wrong})
    assert refused.value.detail == (
        f"limit {name} is {wrong}; use {QUOTA_LIMITS[name]}, or none for the platform's default."
    )
    assert refused.value.field == "limit"


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="There is no limit 'ram'; use one of cpu, ram_mb, "):
        check_limits({"ram": None})
