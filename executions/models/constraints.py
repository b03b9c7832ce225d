"""Conditions of CHECK constraints in their cheapest form.

PostgreSQL reads and plans the constraints of a table for every statement that writes it, and every step of every run
writes its row and its run's several times. A list of values as one constant takes a fraction of the time of the same
list as an expression.
"""

from collections.abc import Iterable

from django.db.models import BooleanField, F, Func, Value
from django.db.models.lookups import IsNull


def one_of(field: str, values: Iterable[str]) -> Func:
    """Require that the text is one of these plain words."""
    return _compared(field, values, " = ANY (")


def null_unless(field: str, other: str, values: Iterable[str]) -> Func:
    """Require that the field is set exactly when the other is one of these plain words."""
    missing = Func(IsNull(F(field), rhs=True), template="(%(expressions)s)")
    differs = _compared(other, values, " <> ALL (")
    return Func(
        missing,
        differs,
        arg_joiner=" = ",
        template="%(expressions)s",
        output_field=BooleanField(),
    )


def _compared(field: str, values: Iterable[str], operator: str) -> Func:
    return Func(
        F(field),
        Value("{" + ",".join(values) + "}"),
        arg_joiner=operator,
        template="(%(expressions)s::text[]))",
        output_field=BooleanField(),
    )
