"""executions.blueprints.amounts: one amount reads the same wherever it comes from."""

from decimal import Decimal

import pytest

from executions.blueprints.amounts import amount_text


@pytest.mark.parametrize(
    ("amount", "text"),
    [("12", "12"), ("12.0", "12"), ("12.000000", "12"), ("100", "100"), ("1E+2", "100"),
     ("0.250", "0.25"), ("1E-6", "0.000001"), ("0.000", "0")],
)  # fmt: skip
def test_zeros_that_say_nothing_are_left_out(amount: str, text: str) -> None:
    assert amount_text(Decimal(amount)) == text
