"""ExecutionMemory: the inputs, step outputs and variables of one execution, and nothing else. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from executions.blueprints.plan import WHOLE, Plan
from executions.semantics.canonical_json import loads
from executions.semantics.masking import Masker, mask_fields
from isolane.names import VARIABLE
from isolane.protocol import dump

MAX_MEMORY_BYTES = 16 * 1024 * 1024  # all outputs and variables of one execution, as JSON
MAX_VARIABLES_BYTES = 1024 * 1024  # its variables: every step is sent all of them


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """The identity of the execution; never changes."""

    tenant_id: int
    execution_id: UUID
    blueprint: str
    blueprint_version: int


class ExecutionMemory:
    """The memory of one execution of one tenant. Values come in and leave as JSON: by value, in one form.

    The scope for references is read-only: never change a value in place.
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
        self._inputs: dict[str, Any] = loads(dump(inputs))
        self._outputs: dict[str, Any] = loads(dump(outputs))
        # A masked name is not a valid one; the real name is among the unsealed variables.
        named = {name: value for name, value in variables.items() if VARIABLE.fullmatch(name)}
        self._variables: dict[str, Any] = loads(dump(named))
        self._sensitive_variables = {name for name in sensitive_variables if _may_mark(plan, name)}
        self._sizes = {path: len(dump(value)) for path, value in self._outputs.items()}
        self._sizes[""] = len(dump(self._variables))
        self.masker.learn(inputs, plan.sensitive_inputs)
        self.masker.learn(self._variables, self._sensitive_variables)
        for path, output in self._outputs.items():
            self.masker.learn(output, plan.step(path).sensitive)
        # The others were sealed for a sensitive text in them. It is found again unless it is gone from the memory.
        for name in sensitive_variables - self._sensitive_variables:
            if self.masker.masked(self._variables[name]) is self._variables[name]:
                self._sensitive_variables.add(name)
                self.masker.learn(self._variables, {name})

    @property
    def variables(self) -> Mapping[str, Any]:
        """The run's current variables."""
        return self._variables

    @property
    def is_masked(self) -> bool:
        """True if any value in it may not be shown."""
        return self.has_sensitive or self.masker.has_secrets

    @property
    def has_sensitive(self) -> bool:
        """True if the blueprint marks anything as sensitive."""
        return self._plan.has_sensitive

    def excess(self, path: str, output: bytes, variables: Mapping[str, Any]) -> str:
        """Return a message if a step's output and variables, with all others, exceed a limit; else an empty text."""
        sizes = {**self._sizes, path: len(output)}
        if variables:
            sizes[""] = size = len(dump({**self._variables, **variables}))
            if size > MAX_VARIABLES_BYTES:
                return (
                    f"All variables of the run together have {size} bytes of JSON, over the limit of"
                    f" {MAX_VARIABLES_BYTES}; hand large values on as outputs."
                )
        if (size := sum(sizes.values())) > MAX_MEMORY_BYTES:
            return (
                f"All outputs and variables of the run together have {size} bytes of JSON, over the"
                f" limit of {MAX_MEMORY_BYTES}."
            )
        return ""

    def learn(self, path: str, output: Any, variables: Mapping[str, Any]) -> None:
        """Mask the sensitive parts of a step's output and variables from now on, stored or not."""
        fields = self._plan.step(path).sensitive
        self.masker.learn(output, fields)
        self.masker.learn(variables, _marked(variables, fields))

    def remember(self, path: str, output: bytes, variables: Mapping[str, Any]) -> None:
        """Keep a step's output, given as JSON, and the variables it has set."""
        self._outputs[path] = value = loads(output)
        self._sizes[path] = len(output)
        self.learn(path, value, variables)
        if variables:
            self._variables.update(loads(dump(variables)))
            self._sizes[""] = len(dump(self._variables))
            # A step that sets a variable without marking it makes it public again.
            self._sensitive_variables -= set(variables)
            self._sensitive_variables |= _marked(variables, self._plan.step(path).sensitive)

    def scope(self) -> dict[str, Any]:
        """Return the scope in which references are resolved."""
        return {"inputs": self._inputs, "steps": self._outputs, "vars": self._variables}

    def output(self, path: str) -> Any:
        """Return a step's output."""
        return self._outputs[path]

    def shown_output(self, path: str) -> Any:
        """Return a step's output with everything sensitive masked; the same object if nothing is."""
        output = self._outputs[path]
        return self.masker.masked(mask_fields(output, self._plan.step(path).sensitive))

    def shown_variables(self) -> dict[str, Any]:
        """Return the variables with everything sensitive masked."""
        shown: dict[str, Any] = self.masker.masked(
            mask_fields(self._variables, self._sensitive_variables)
        )
        return shown

    def hidden_variables(self) -> dict[str, Any]:
        """Return the variables that are masked when shown."""
        shown, missing = self.shown_variables(), object()
        return {
            name: value
            for name, value in self._variables.items()
            if shown.get(name, missing) is not value
        }

    def shown_scope(self) -> dict[str, Any]:
        """Return the scope with sensitive fields masked; known texts in resolved values must still be masked."""
        steps = {
            path: mask_fields(output, self._plan.step(path).sensitive)
            for path, output in self._outputs.items()
        }
        return {
            "inputs": mask_fields(self._inputs, self._plan.sensitive_inputs),
            "steps": steps,
            "vars": mask_fields(self._variables, self._sensitive_variables),
        }


def _marked(variables: Mapping[str, Any], fields: frozenset[str]) -> frozenset[str]:
    return frozenset(variables) if WHOLE in fields else fields & variables.keys()


def _may_mark(plan: Plan, name: str) -> bool:
    return any(step.sensitive & {name, WHOLE} for step in plan.steps)
