"""ExecutionMemory: the inputs, step outputs and variables of one execution, and nothing else. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.blueprint.plan import WHOLE, Plan
from executions.semantics.masking import Masker, mask_fields
from isolane.protocol import dump

MAX_MEMORY_BYTES = 16 * 1024 * 1024  # of all outputs and variables of one execution, as JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """Whose memory it is; never changes."""

    tenant_id: int
    execution_id: UUID
    blueprint: str
    blueprint_version: int


class ExecutionMemory:
    """Belongs to one execution of one tenant. Values come in as JSON and leave as JSON, so by value.

    What references are resolved against is for reading only: nobody changes a value in place.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        metadata: Metadata,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        variables: Mapping[str, Any],
        sensitive_variables: frozenset[str] = frozenset(),
    ) -> None:
        self.metadata = metadata
        self.masker = Masker()
        self._plan = plan
        self._inputs: dict[str, Any] = json.loads(dump(inputs))
        self._outputs: dict[str, Any] = json.loads(dump(outputs))
        self._variables: dict[str, Any] = json.loads(dump(variables))
        self._sensitive_variables = set(sensitive_variables)
        self._sizes = {path: len(dump(value)) for path, value in self._outputs.items()}
        self._sizes[""] = len(dump(self._variables))
        self.masker.learn(inputs, plan.sensitive_inputs)
        self.masker.learn(variables, sensitive_variables)
        for path, output in self._outputs.items():
            self.masker.learn(output, plan.step(path).sensitive)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The run's variables now."""
        return self._variables

    @property
    def sensitive_variables(self) -> frozenset[str]:
        """Those that a step has marked."""
        return frozenset(self._sensitive_variables)

    @property
    def is_masked(self) -> bool:
        """Whether anything in it may not be shown."""
        return self._plan.has_sensitive

    def fits(self, path: str, output: bytes, variables: Mapping[str, Any]) -> bool:
        """Say whether a step's output and variables have room beside all others."""
        sizes = {**self._sizes, path: len(output)}
        if variables:
            sizes[""] = len(dump({**self._variables, **variables}))
        return sum(sizes.values()) <= MAX_MEMORY_BYTES

    def remember(self, path: str, output: bytes, variables: Mapping[str, Any]) -> None:
        """Keep what a step came to, its output as JSON."""
        fields = self._plan.step(path).sensitive
        self._outputs[path] = value = json.loads(output)
        self._sizes[path] = len(output)
        self.masker.learn(value, fields)
        if variables:
            self._variables.update(json.loads(dump(variables)))
            self._sizes[""] = len(dump(self._variables))
            self._mark(variables, fields)

    def scope(self) -> dict[str, Any]:
        """What references are resolved against."""
        return {"inputs": self._inputs, "steps": self._outputs, "vars": self._variables}

    def shown_scope(self) -> dict[str, Any]:
        """The same with everything sensitive masked: what is resolved against it may be shown."""
        steps = {
            path: mask_fields(output, self._plan.step(path).sensitive)
            for path, output in self._outputs.items()
        }
        return {
            "inputs": mask_fields(self._inputs, self._plan.sensitive_inputs),
            "steps": steps,
            "vars": mask_fields(self._variables, self._sensitive_variables),
        }

    def _mark(self, variables: Mapping[str, Any], fields: frozenset[str]) -> None:
        marked = set(variables) if WHOLE in fields else fields & set(variables)
        # A variable that is set anew by a step which does not mark it is open again.
        self._sensitive_variables -= set(variables)
        self._sensitive_variables |= marked
        self.masker.learn(variables, marked)
