"""executions.semantics.memory: values go in and come out by value, within limits; sensitive ones are masked."""

import json
from typing import Any
from uuid import UUID

import pytest

from executions.blueprints.plan import plan
from executions.semantics import memory as memory_module
from executions.semantics.masking import MASK
from executions.semantics.memory import ExecutionMemory, Metadata
from isolane.protocol import dump

METADATA = Metadata(tenant_id=3, execution_id=UUID(int=7), blueprint="flow", blueprint_version=2)
LIMIT = 100


def make_memory(
    *,
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, Any] | None = None,
    variables: dict[str, Any] | None = None,
    sensitive_variables: frozenset[str] = frozenset(),
    sensitive: Any = False,
) -> ExecutionMemory:
    """Of a run with the steps one and two; the second's output and the input `password` may be sensitive."""
    properties = {"password": {"type": "string", "sensitive": True}}
    document: dict[str, Any] = {
        "name": "flow",
        "steps": [{"key": "one", "uses": "x"}, {"key": "two", "uses": "x", "sensitive": sensitive}],
    }
    if sensitive:
        document["inputs"] = {"type": "object", "properties": properties}
    return ExecutionMemory(
        plan(document),
        metadata=METADATA,
        inputs=inputs or {},
        outputs=outputs or {},
        variables=variables or {},
        sensitive_variables=sensitive_variables,
    )


def test_it_shows_inputs_outputs_and_variables() -> None:
    memory = make_memory(inputs={"a": 1}, outputs={"one": {"x": 1}}, variables={"v": 1})
    memory.remember("two", b"[2]", {"w": 2})
    assert memory.scope() == {
        "inputs": {"a": 1},
        "steps": {"one": {"x": 1}, "two": [2]},
        "vars": {"v": 1, "w": 2},
    }
    assert memory.shown_scope() == memory.scope()
    assert not memory.is_masked
    assert memory.metadata == METADATA


def test_changing_what_went_in_changes_nothing() -> None:
    inputs: dict[str, Any] = {"a": [1]}
    outputs: dict[str, Any] = {"one": {"x": [1]}}
    variables: dict[str, Any] = {"v": [1]}
    memory = make_memory(inputs=inputs, outputs=outputs, variables=variables)
    changes: dict[str, Any] = {"w": [1]}
    memory.remember("two", b"1", changes)
    for kept in (inputs["a"], outputs["one"]["x"], variables["v"], changes["w"]):
        kept.append(2)
    assert json.loads(dump(memory.scope())) == {
        "inputs": {"a": [1]},
        "steps": {"one": {"x": [1]}, "two": 1},
        "vars": {"v": [1], "w": [1]},
    }


def test_two_memories_share_nothing() -> None:
    given: dict[str, Any] = {"one": [1]}
    first, second = (make_memory(inputs=given, outputs=given, variables=given) for _ in range(2))
    first.remember("one", b"[2]", {"one": 2})
    assert second.scope() == {"inputs": given, "steps": given, "vars": given}


# --- limits
@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(memory_module, "MAX_MEMORY_BYTES", LIMIT)
    return LIMIT


def test_outputs_and_variables_fit_up_to_the_limit_together(limit: int) -> None:
    memory = make_memory(outputs={"one": "x" * 38}, variables={"v": "y" * 12})  # 40 and 20 bytes
    assert memory.excess("two", b"z" * 40, {}) == ""
    assert memory.excess("two", b"z" * 41, {}) == (
        "All outputs and variables of the run together have 101 bytes of JSON, over the limit of 100."
    )
    assert not memory.excess("two", b"z" * 40, {"v": "a" * 12})  # in place of what was there
    assert memory.excess("two", b"z" * 40, {"v": "a" * 13})
    assert memory.excess("two", b"z" * 40, {"w": 1})


def test_asking_whether_it_fits_remembers_nothing(limit: int) -> None:
    memory = make_memory()
    for _ in range(3):
        assert not memory.excess("two", b"z" * 90, {})
    assert memory.scope()["steps"] == {}


def test_a_step_that_runs_again_takes_its_own_place(limit: int) -> None:
    memory = make_memory()
    memory.remember("two", dump("z" * 90), {})
    assert not memory.excess("two", b"z" * 90, {})
    assert memory.excess("one", b"z" * 90, {})


def test_what_was_remembered_counts(limit: int) -> None:
    memory = make_memory()
    memory.remember("one", dump("z" * 38), {"v": "y" * 12})
    assert not memory.excess("two", b"z" * 40, {})
    assert memory.excess("two", b"z" * 41, {})


def test_variables_have_a_limit_of_their_own_since_every_step_is_sent_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_module, "MAX_VARIABLES_BYTES", 20)
    memory = make_memory(variables={"v": "y" * 4})  # 12 bytes
    assert not memory.excess("two", b"z" * 100, {"v": "y" * 12})
    assert not memory.excess("two", b"", {"w": 12})
    assert not memory.excess("two", b"", {"w": 123})
    assert memory.excess("two", b"", {"w": 1234}).startswith(
        "All variables of the run together have 21 bytes of JSON, over the limit of 20"
    )


# --- what is sensitive
def test_what_is_sensitive_is_there_to_use_and_masked_to_show() -> None:
    memory = make_memory(inputs={"password": "hunter2", "a": 1}, sensitive=["token", "key"])
    memory.remember("two", dump({"token": "t0ken", "n": 1}), {"key": "k3yy", "open": 2})
    assert memory.is_masked
    assert memory.scope()["steps"]["two"] == {"token": "t0ken", "n": 1}
    assert memory.scope()["vars"] == {"key": "k3yy", "open": 2}
    assert memory.shown_scope() == {
        "inputs": {"password": MASK, "a": 1},
        "steps": {"two": {"token": MASK, "n": 1}},
        "vars": {"key": MASK, "open": 2},
    }
    assert memory.hidden_variables() == {"key": "k3yy"}
    assert memory.masker.mask("hunter2 t0ken k3yy") == "*** *** ***"


def test_a_step_that_is_sensitive_as_a_whole_hides_its_variables_too() -> None:
    memory = make_memory(sensitive=True)
    memory.remember("two", dump(["t0ken"]), {"key": "k3yy"})
    assert memory.shown_scope()["steps"] == {"two": MASK}
    assert memory.shown_scope()["vars"] == {"key": MASK}


def test_a_variable_that_is_set_anew_without_a_mark_is_open_again() -> None:
    memory = make_memory(variables={"key": "k3yy"}, sensitive_variables=frozenset({"key"}))
    assert memory.shown_scope()["vars"] == {"key": MASK}
    memory.remember("one", b"null", {"key": "open"})
    assert memory.shown_scope()["vars"] == {"key": "open"}
    assert memory.masker.mask("k3yy") == MASK  # the old value is still nobody's business


def test_a_memory_that_is_read_again_knows_what_to_mask() -> None:
    memory = make_memory(
        inputs={"password": "hunter2"},
        outputs={"two": {"token": "t0ken"}},
        variables={"key": "k3yy"},
        sensitive_variables=frozenset({"key"}),
        sensitive=["token", "key"],
    )
    assert memory.masker.mask("hunter2 t0ken k3yy") == "*** *** ***"


# --- what is sensitive is followed
def test_what_is_known_is_masked_in_what_nobody_marked() -> None:
    memory = make_memory(inputs={"password": "hunter2"}, sensitive=["token"])
    memory.remember("one", dump({"a": ["is hunter2"], "n": 1}), {"v": "hunter2", "open": [1]})
    assert memory.output("one") == {"a": ["is hunter2"], "n": 1}
    assert memory.shown_output("one") == {"a": ["is ***"], "n": 1}
    assert memory.shown_variables() == {"v": MASK, "open": [1]}
    assert memory.hidden_variables() == {"v": "hunter2"}
    assert memory.variables == {"v": "hunter2", "open": [1]}


def test_a_variable_that_was_sealed_for_what_was_found_in_it_hides_no_more_than_that() -> None:
    found = frozenset({"v"})
    memory = make_memory(
        inputs={"password": "hunter2"},
        variables={"v": {"user": "annabel", "p": "hunter2"}},
        sensitive_variables=found,
        sensitive=["token"],
    )
    assert memory.shown_variables() == {"v": {"user": "annabel", "p": MASK}}
    assert memory.masker.mask("annabel") == "annabel"


def test_what_was_found_in_it_may_be_gone_from_the_memory_and_then_all_of_it_is_hidden() -> None:
    memory = make_memory(
        variables={"v": "k3yy"}, sensitive_variables=frozenset({"v"}), sensitive=["token"]
    )
    assert memory.shown_variables() == {"v": MASK}
    assert memory.hidden_variables() == {"v": "k3yy"}


def test_a_masked_name_is_no_variable_when_the_memory_is_read_again() -> None:
    memory = make_memory(inputs={"password": "hunter2"}, sensitive=["token"])
    memory.remember("one", b"null", {"of_hunter2": 1})
    shown, hidden = memory.shown_variables(), memory.hidden_variables()
    assert (shown, hidden) == ({"of_***": 1}, {"of_hunter2": 1})
    again = make_memory(
        inputs={"password": "hunter2"},
        variables=shown | hidden,
        sensitive_variables=frozenset(hidden),
        sensitive=["token"],
    )
    assert again.variables == {"of_hunter2": 1}
    assert "hunter2" not in str(again.shown_variables())
