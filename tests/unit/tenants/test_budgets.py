"""Valid monthly budgets."""

import pytest

from foundation.errors import InvalidInput
from tenants.budgets import MAX_AMOUNT, MAX_KINDS, Amount, changed_budget, check_budget


@pytest.mark.parametrize(
    "budget",
    [{}, {"tokens": 1}, {"tokens": MAX_AMOUNT, "usd": 0.01}, {"a" * 40: 1.5, "gpu_seconds_2": 7}],
)
def test_a_usable_budget_comes_back(budget: dict[str, Amount]) -> None:
    assert check_budget(budget) == budget


@pytest.mark.parametrize("kind", ["", "Tokens", "1st", "_x", "a-b", "a" * 41, "tokens\n", 5])
def test_a_kind_that_is_none_is_refused(kind: object) -> None:
    with pytest.raises(InvalidInput, match="1 to 40 of a-z, 0-9 and _") as refused:
        check_budget({kind: 1})
    assert refused.value.field == "budget"
    assert repr(kind) in refused.value.detail


@pytest.mark.parametrize(
    "amount",
    [0, -1, 0.0, float("nan"), float("inf"), float("-inf"), MAX_AMOUNT + 1, 10**400, True, "5", None, [1]],
)  # fmt: skip
def test_an_amount_is_a_number_above_zero(amount: object) -> None:
    with pytest.raises(InvalidInput, match=r"budget tokens is .*; use a number above 0") as refused:
        check_budget({"tokens": amount})
    assert refused.value.field == "budget"


@pytest.mark.parametrize("budget", [None, [], "tokens=5", 5])
def test_a_budget_is_an_object(budget: object) -> None:
    with pytest.raises(InvalidInput, match="use an object such as"):
        check_budget(budget)


def test_a_budget_has_so_many_kinds() -> None:
    most = {f"kind_{number}": 1 for number in range(MAX_KINDS)}
    assert check_budget(most) == most
    with pytest.raises(InvalidInput, match="budget has 21 kinds; use at most 20"):
        check_budget({**most, "one_more": 1})


def test_a_change_sets_and_removes_and_leaves_the_rest() -> None:
    before = {"tokens": 10, "usd": 2.5, "calls": 3}
    assert changed_budget(before, {"tokens": 20, "usd": None}) == {"tokens": 20, "calls": 3}
    assert changed_budget(before, {}) == before == {"tokens": 10, "usd": 2.5, "calls": 3}


@pytest.mark.parametrize(("before", "known"), [({}, "nothing"), ({"usd": 1, "calls": 1}, "calls, usd")])  # fmt: skip
def test_what_is_not_there_cannot_be_removed(before: dict[str, Amount], known: str) -> None:
    with pytest.raises(InvalidInput, match=f"has no 'tokns' to remove; it limits {known}"):
        changed_budget(before, {"tokns": None})


def test_a_change_is_checked() -> None:
    with pytest.raises(InvalidInput, match="budget tokens is -1"):
        changed_budget({"tokens": 10}, {"tokens": -1})
