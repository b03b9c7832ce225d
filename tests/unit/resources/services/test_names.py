"""The names of definitions and secrets."""

import pytest

from foundation.errors import InvalidInput
from resources.services.names import check_name, is_name

BAD = [
    "",
    "../x",
    "a/b",
    "a'; drop table x; --",
    "a" * 64,
    "münze",
    "A",
    "1a",
    "a b",
    "a\n",
    "a\0",
    "-a",
    None,
    7,
]


@pytest.mark.parametrize("name", ["a", "billing-db", "a_1", "a" * 63])
def test_a_name_is_taken(name: str) -> None:
    assert check_name(name) == name
    assert is_name(name)


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_name_is_refused_with_the_rule(name: object) -> None:
    assert not is_name(name)
    with pytest.raises(InvalidInput, match="1 to 63 of a-z, 0-9, '_' and '-'") as refused:
        check_name(name)
    assert refused.value.field == "name"
    assert len(refused.value.detail) < 250


def test_a_long_name_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_name("x" * 10_000, field="secrets.password")
    assert refused.value.detail.startswith("secrets.password 'xxx")
    assert len(refused.value.detail) < 250
