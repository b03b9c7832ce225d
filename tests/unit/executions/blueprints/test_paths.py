"""executions.blueprints.paths: built and taken apart the same way, and never long."""

import pytest

from executions.blueprints.errors import SHOWN
from executions.blueprints.paths import child, item, parent, path_of


def test_a_path_leads_over_keys_and_indexes() -> None:
    assert path_of(["steps", 1, "with", "x"]) == "$.steps[1].with.x"
    assert path_of([0, "a"], "$.steps") == "$.steps[0].a"


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("$.a.b", "$.a"),
        ("$.a[10]", "$.a"),
        ("$.a[1].b", "$.a[1]"),
        ("$.a", "$"),
        ("$", ""),
        ("", ""),
    ],
)
def test_the_path_above(path: str, above: str) -> None:
    assert parent(path) == above


def test_a_path_is_cut_and_then_stays() -> None:
    cut = child("$", "k" * 1000)
    assert len(cut) == SHOWN
    assert cut.endswith("…")
    assert child(cut, "x") == item(cut, 3) == cut
