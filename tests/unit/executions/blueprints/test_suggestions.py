"""executions.blueprints.suggestions: the nearest name, else a bounded list."""

import pytest

from executions.blueprints.suggestions import MAX_LISTED, instead_of


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("data.mpa", ["data.map", "flow.sleep"], "did you mean 'data.map'?"),
        ("xyz", ["b", "a"], "known are a, b."),
        ("xyz", [], "known are none."),
    ],
)
def test_what_may_have_been_meant(name: str, known: list[str], expected: str) -> None:
    assert instead_of(name, known) == expected


def test_a_long_list_is_cut() -> None:
    known = [f"node{number:03}" for number in range(MAX_LISTED + 1)]
    assert instead_of("xyz", known).endswith("node019, ….")
