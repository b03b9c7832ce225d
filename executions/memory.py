"""ExecutionMemory: the inputs and step outputs of one execution, and nothing else. Pure."""

import copy
from collections.abc import Mapping
from typing import Any


class ExecutionMemory:
    """Belongs to one execution of one tenant; values go in and come out by value."""

    def __init__(self, *, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self._inputs = copy.deepcopy(dict(inputs))
        self._outputs = copy.deepcopy(dict(outputs))

    def remember(self, path: str, output: Any) -> None:
        """Keep a step's output."""
        self._outputs[path] = copy.deepcopy(output)

    def scope(self) -> dict[str, Any]:
        """What references are resolved against."""
        return copy.deepcopy({"inputs": self._inputs, "steps": self._outputs})
