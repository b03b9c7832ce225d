"""tenants.statement: parameters by number."""

import pytest

from tenants.statement import numbered


def test_parameters_are_numbered_in_the_order_in_which_they_first_stand() -> None:
    text, names = numbered("SELECT %(b)s::int, %(a)s::text, %(b)s::int + 1")
    assert text == "SELECT $1::int, $2::text, $1::int + 1"
    assert names == ("b", "a")


def test_a_statement_may_have_none() -> None:
    assert numbered("SELECT 1") == ("SELECT 1", ())


@pytest.mark.parametrize("statement", ["SELECT %s", "SELECT 1 %% 2", "SELECT %(a)t"])
def test_anything_else_with_a_percent_sign_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="nothing else with %"):
        numbered(statement)
