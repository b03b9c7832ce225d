"""The limits of a run in a tenant's quota; null stands for the platform's default. Pure."""

from collections.abc import Mapping
from types import MappingProxyType

from foundation.errors import InvalidInput
from foundation.limit_bounds import LIMIT_BOUNDS, Bounds, Number

# By their columns. A run's timeout has at most 7 days, too.
QUOTA_LIMITS: Mapping[str, Bounds] = MappingProxyType(
    {**LIMIT_BOUNDS, "max_run_minutes": Bounds(1, 7 * 24 * 60)}
)


def check_limits(limits: Mapping[str, Number | None]) -> None:
    """Refuse an unknown limit or a number out of its range; the error names it and what is usable."""
    for name, value in limits.items():
        if name not in QUOTA_LIMITS:
            raise InvalidInput(
                f"There is no limit {name!r}; use one of {', '.join(QUOTA_LIMITS)}.", field="limit"
            )
        if value is not None and not QUOTA_LIMITS[name].allow(value):
            raise InvalidInput(
                f"limit {name} is {value!r}; use {QUOTA_LIMITS[name]}, or none for the platform's default.",
                field="limit",
            )
