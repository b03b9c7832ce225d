"""Cost limits of a tenant's runs in a calendar month (UTC), by kind of cost. Pure."""

import re
from collections.abc import Mapping

from foundation.errors import InvalidInput

Amount = int | float
KIND = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
MAX_KINDS = 20
MAX_AMOUNT = 10**15  # up to here a float is exact, too


def check_budget(budget: object) -> dict[str, Amount]:
    """Return the budget if it is valid; the error names the kind, its amount and a valid range."""
    if not isinstance(budget, dict):
        raise _misfit(f'is {budget!r}; use an object such as {{"tokens": 1000000}}')
    if len(budget) > MAX_KINDS:
        raise _misfit(f"has {len(budget)} kinds; use at most {MAX_KINDS}")
    for kind, amount in budget.items():
        if not isinstance(kind, str) or not KIND.match(kind):
            raise _misfit(f"kind {kind!r} is not usable: 1 to 40 of a-z, 0-9 and _, a letter first")
        # A bool is an int to Python; NaN and infinity fail the comparison.
        if not isinstance(amount, Amount) or isinstance(amount, bool) or not _fits(amount):
            raise _misfit(
                f"{kind} is {amount!r}; use a number above 0, at most {MAX_AMOUNT}, or remove it"
            )
    return budget


def changed_budget(
    budget: Mapping[str, Amount], changes: Mapping[str, Amount | None]
) -> dict[str, Amount]:
    """Return the budget with new amounts; None removes a kind, kinds not named stay."""
    removed = {kind for kind, amount in changes.items() if amount is None}
    if unknown := sorted(removed - set(budget)):
        known = ", ".join(sorted(budget)) or "nothing"
        raise _misfit(f"has no {unknown[0]!r} to remove; it limits {known}")
    merged = {**budget, **changes}
    return check_budget({kind: amount for kind, amount in merged.items() if amount is not None})


def _fits(amount: Amount) -> bool:
    return 0 < amount <= MAX_AMOUNT


def _misfit(what: str) -> InvalidInput:
    return InvalidInput(f"budget {what}.", field="budget")
