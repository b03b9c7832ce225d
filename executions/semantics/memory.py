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

MAX_MEMORY_BYTES = 16 * 1024 * 1024  # of all outputs and variables of one execution, as JSON
MAX_VARIABLES_BYTES = 1024 * 1024  # of its variables: every step is sent all of them


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """Whose memory it is; never changes."""

    tenant_id: int
    execution_id: UUID
    blueprint: str
    blueprint_version: int


class ExecutionMemory:
    """Belongs to one execution of one tenant. Values come in as JSON and leave as JSON, so by value and in one form.

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
        self._inputs: dict[str, Any] = loads(dump(inputs))
        self._outputs: dict[str, Any] = loads(dump(outputs))
        # A name that was masked is none; the real one is among those that were unsealed.
        named = {name: value for name, value in variables.items() if VARIABLE.fullmatch(name)}
        self._variables: dict[str, Any] = loads(dump(named))
        self._sensitive_variables = {name for name in sensitive_variables if _may_mark(plan, name)}
        self._sizes = {path: len(dump(value)) for path, value in self._outputs.items()}
        self._sizes[""] = len(dump(self._variables))
        self.masker.learn(inputs, plan.sensitive_inputs)
        self.masker.learn(self._variables, self._sensitive_variables)
        for path, output in self._outputs.items():
            self.masker.learn(output, plan.step(path).sensitive)
        # The others were sealed for what was found in them, and is found again, unless it is gone from the memory.
        for name in sensitive_variables - self._sensitive_variables:
            if self.masker.masked(self._variables[name]) is self._variables[name]:
                self._sensitive_variables.add(name)
                self.masker.learn(self._variables, {name})

    @property
    def variables(self) -> Mapping[str, Any]:
        """The run's variables now."""
        return self._variables

    @property
    def is_masked(self) -> bool:
        """Whether anything in it may not be shown."""
        return self.has_sensitive or self.masker.has_secrets

    @property
    def has_sensitive(self) -> bool:
        """Whether the blueprint marks anything as sensitive."""
        return self._plan.has_sensitive

    def excess(self, path: str, output: bytes, variables: Mapping[str, Any]) -> str:
        """Say which limit a step's output and variables are over, beside all others; nothing if none."""
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
        """Know what a step marks in what it came to, whether that is kept or not."""
        fields = self._plan.step(path).sensitive
        self.masker.learn(output, fields)
        self.masker.learn(variables, _marked(variables, fields))

    def remember(self, path: str, output: bytes, variables: Mapping[str, Any]) -> None:
        """Keep what a step came to, its output as JSON."""
        self._outputs[path] = value = loads(output)
        self._sizes[path] = len(output)
        self.learn(path, value, variables)
        if variables:
            self._variables.update(loads(dump(variables)))
            self._sizes[""] = len(dump(self._variables))
            # A variable that is set anew by a step which does not mark it is open again.
            self._sensitive_variables -= set(variables)
            self._sensitive_variables |= _marked(variables, self._plan.step(path).sensitive)

    def scope(self) -> dict[str, Any]:
        """What references are resolved against."""
        return {"inputs": self._inputs, "steps": self._outputs, "vars": self._variables}

    def output(self, path: str) -> Any:
        """What a step came to."""
        return self._outputs[path]

    def shown_output(self, path: str) -> Any:
        """The same with everything sensitive masked; the very same if nothing is."""
        output = self._outputs[path]
        return self.masker.masked(mask_fields(output, self._plan.step(path).sensitive))

    def shown_variables(self) -> dict[str, Any]:
        """The variables with everything sensitive masked."""
        shown: dict[str, Any] = self.masker.masked(
            mask_fields(self._variables, self._sensitive_variables)
        )
        return shown

    def hidden_variables(self) -> dict[str, Any]:
        """Those that are not shown as they are."""
        shown, missing = self.shown_variables(), object()
        return {
            name: value
            for name, value in self._variables.items()
            if shown.get(name, missing) is not value
        }

    def shown_scope(self) -> dict[str, Any]:
        """What references are resolved against to be shown; of what they give, known texts are still to be masked."""
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
