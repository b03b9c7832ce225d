"""Formatting of costs and budgets for people. Pure."""

from decimal import Decimal


def amount_text(amount: Decimal | float) -> str:
    """Return an amount without trailing zeros and without an exponent."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
