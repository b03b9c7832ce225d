"""executions.semantics.budgets: spent budgets by name, and exact sums."""

from decimal import Decimal

import pytest

from executions.semantics.budgets import Budget

TEN = Decimal(10)


@pytest.mark.parametrize(
    ("spent", "over"),
    [({}, False), ({"tokens": Decimal("9.999")}, False), ({"eur": TEN}, False)]
    + [({"tokens": amount}, True) for amount in (TEN, Decimal("10.001"))],
)
def test_a_budget_is_spent_when_its_limit_is_reached(spent: dict[str, Decimal], over: bool) -> None:
    limits = {"tokens": TEN}
    run = Budget(run_limits=limits, run_spent=dict(spent)).spent_up()
    tenant = Budget(tenant_limits=limits, tenant_spent=dict(spent)).spent_up()
    assert (bool(run), bool(tenant)) == (over, over)
    if over:
        amount = spent["tokens"]
        assert run == f"The blueprint's budget is spent: {amount} of 10 tokens."
        assert tenant == f"The tenant's budget for this month is spent: {amount} of 10 tokens."


def test_without_limits_nothing_is_ever_spent() -> None:
    budget = Budget(run_spent={"tokens": Decimal(10**9)}, tenant_spent={"eur": Decimal(10**9)})
    assert budget.spent_up() == ""


def test_what_the_run_spends_does_not_count_for_the_tenant_and_the_other_way_round() -> None:
    budget = Budget(run_limits={"tokens": TEN}, tenant_spent={"tokens": TEN})
    assert budget.spent_up() == ""
    budget = Budget(tenant_limits={"tokens": TEN}, run_spent={"tokens": TEN})
    assert budget.spent_up() == ""


def test_costs_add_up_exactly_and_change_nothing() -> None:
    budget = Budget(run_spent={"eur": Decimal("0.1")})
    costs = {"eur": Decimal("0.2"), "tokens": Decimal(812)}
    assert budget.with_costs(costs) == {"eur": Decimal("0.3"), "tokens": Decimal(812)}
    assert budget.run_spent == {"eur": Decimal("0.1")}
