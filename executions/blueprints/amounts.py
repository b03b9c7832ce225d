"""Amounts of costs and budgets as people read them. Pure."""

from decimal import Decimal


def amount_text(amount: Decimal | float) -> str:
    """An amount without zeros that say nothing, and without an exponent."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
