"""Budgets: the amounts a run and its tenant may still spend. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from executions.blueprints.amounts import amount_text

Amounts = Mapping[str, Decimal]


@dataclass(kw_only=True, slots=True)
class Budget:
    """The limits of a blueprint and of its tenant's month, and the amounts spent."""

    run_limits: Amounts = field(default_factory=dict)
    run_spent: dict[str, Decimal] = field(default_factory=dict)
    tenant_limits: Amounts = field(default_factory=dict)
    tenant_spent: dict[str, Decimal] = field(default_factory=dict)

    def spent_up(self) -> str:
        """Return a message about the first budget that is spent; empty if none is."""
        for budget, limits, spent in (
            ("blueprint's budget", self.run_limits, self.run_spent),
            ("tenant's budget for this month", self.tenant_limits, self.tenant_spent),
        ):
            for kind, limit in limits.items():
                if spent.get(kind, Decimal()) >= limit:
                    return f"The {budget} is spent: {amount_text(spent[kind])} of {amount_text(limit)} {kind}."
        return ""

    def with_costs(self, costs: Amounts) -> dict[str, Decimal]:
        """Return the run's costs including these."""
        kinds = {*self.run_spent, *costs}
        zero = Decimal()
        return {
            kind: self.run_spent.get(kind, zero) + costs.get(kind, zero) for kind in sorted(kinds)
        }
