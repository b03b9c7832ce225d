"""executions.memory: values go in and come out by value, and no two memories share any."""

from typing import Any

from executions.memory import ExecutionMemory


def test_it_shows_inputs_and_outputs() -> None:
    memory = ExecutionMemory(inputs={"a": 1}, outputs={"one": {"x": 1}})
    memory.remember("two", [2])
    assert memory.scope() == {"inputs": {"a": 1}, "steps": {"one": {"x": 1}, "two": [2]}}


def test_changing_what_went_in_changes_nothing() -> None:
    inputs: dict[str, Any] = {"a": [1]}
    outputs: dict[str, Any] = {"one": {"x": [1]}}
    remembered = [1]
    memory = ExecutionMemory(inputs=inputs, outputs=outputs)
    memory.remember("two", remembered)
    inputs["a"].append(2)
    outputs["one"]["x"].append(2)
    outputs["three"] = 3
    remembered.append(2)
    assert memory.scope() == {"inputs": {"a": [1]}, "steps": {"one": {"x": [1]}, "two": [1]}}


def test_changing_what_came_out_changes_nothing() -> None:
    memory = ExecutionMemory(inputs={"a": [1]}, outputs={"one": [1]})
    seen = memory.scope()
    seen["inputs"]["a"].append(2)
    seen["steps"]["one"].append(2)
    seen["steps"]["two"] = 2
    assert memory.scope() == {"inputs": {"a": [1]}, "steps": {"one": [1]}}


def test_two_memories_share_nothing() -> None:
    given: dict[str, Any] = {"a": [1]}
    first, second = (ExecutionMemory(inputs=given, outputs=given) for _ in range(2))
    first.remember("one", given)
    first.scope()["inputs"]["a"].append(2)
    assert second.scope() == {"inputs": {"a": [1]}, "steps": {"a": [1]}}
