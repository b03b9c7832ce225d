"""The limits that count for a run. Pure."""

from dataclasses import asdict, replace
from typing import Any

from isolane.limits import RunLimits


def effective_limits(*, default: RunLimits, quota: RunLimits, blueprint: RunLimits) -> RunLimits:
    """Return the stricter of the tenant's and the blueprint's, limit by limit.

    A tenant's limit is that of its quota, more or less than the platform's default, which counts where the quota has
    none.
    """
    own: dict[str, Any] = {name: most for name, most in asdict(quota).items() if most is not None}
    return replace(default, **own).stricter(blueprint)
