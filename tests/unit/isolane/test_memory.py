"""isolane.memory: a run's variables, by value."""

from typing import Any

import pytest

from isolane.memory import Memory


@pytest.fixture
def memory() -> Memory:
    return Memory({"total": 5, "items": [1, {"sku": "a"}]})


def test_it_reads_what_the_run_has(memory: Memory) -> None:
    assert dict(memory) == {"total": 5, "items": [1, {"sku": "a"}]}
    assert memory.get("other") is None
    with pytest.raises(KeyError, match="other"):
        memory["other"]


def test_what_is_read_is_a_copy(memory: Memory) -> None:
    memory["items"][1]["sku"] = "changed"
    memory.changes["total"] = 9
    assert memory["items"] == [1, {"sku": "a"}]
    assert memory.changes == {}


def test_what_is_set_is_read_again_and_kept_as_it_was_then(memory: Memory) -> None:
    pair = ["x"]
    memory["pair"] = (pair, 1)
    memory["total"] = 6
    pair.append("later")
    assert memory.changes == {"pair": [["x"], 1], "total": 6}
    assert (memory["pair"], memory["total"], len(memory)) == ([["x"], 1], 6, 3)
    assert sorted(memory) == ["items", "pair", "total"]


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b", "a\n", "ü", "a" * 64])
def test_a_name_has_a_form(memory: Memory, name: str) -> None:
    with pytest.raises(ValueError, match="does not match"):
        memory[name] = 1
    assert memory.changes == {}


def test_a_name_is_text(memory: Memory) -> None:
    with pytest.raises(TypeError, match="a variable's name must be a str, not int"):
        memory[5] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1, 2}, "variable x cannot hold set: not JSON: set is not a JSON type"),
        (float("nan"), "variable x cannot hold nan: not JSON"),
        ("a\x00", r"variable x cannot hold 'a\\x00': text with NUL"),
    ],
)
def test_a_value_is_json(memory: Memory, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        memory["x"] = value


def test_nothing_is_deleted(memory: Memory) -> None:
    with pytest.raises(TypeError, match="'total': a run's variables are not deleted; set it to"):
        del memory["total"]
    with pytest.raises(TypeError, match="not deleted"):
        memory.pop("total")
    with pytest.raises(TypeError, match="not deleted"):
        memory.clear()


def test_it_shows_names_only(memory: Memory) -> None:
    memory["secret"] = "hunter2"
    assert repr(memory) == "Memory(total, items, secret)"
