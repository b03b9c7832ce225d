"""One attempt of a step, from its parameters to its record. No I/O; a worker and `isolane run --local` share it.

Timing: background-worker.
Model: sync.
Guarantee: deterministic; the same memory and seed prepare the same attempt.
Failure: every failure becomes a StepResult.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions.resolution import holds, resolve
from executions.blueprints.plan import PlannedStep
from executions.semantics.active_run import ActiveRun
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.attempt_record import AttemptRecord, LogLine
from executions.semantics.decisions import StepDecision, after_skip, after_step
from executions.semantics.result_rules import broken_rule
from executions.semantics.seeds import derive_seed
from executions.semantics.shown_values import shown_values
from executions.states import ExecutionState
from isolane.protocol import Run, dump
from isolane.results import Code, StepResult

MAX_KEY = 200  # characters, as in a blueprint
OVERDUE = "The run has used up its time: the timeout of its blueprint, or its tenant's max_run_minutes if that is less."


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The failure of a step that its recovery node handles."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptOutcome:
    """The result of an attempt, the record to store, and the decision that follows."""

    result: StepResult
    record: AttemptRecord
    decided: StepDecision


class Attempt:
    """One attempt: `prepare` it before the runtime runs it, `finish` it afterwards."""

    def __init__(
        self,
        run: ActiveRun,
        path: str,
        *,
        number: int,
        version: int = 0,
        recovers_from: Failure | None = None,
    ) -> None:
        self.step: PlannedStep = run.plan.step(path)
        self._run = run
        self._number = number
        self._version = version
        self._recovers_from = recovers_from
        self._shown: Any = None

    def prepare(self) -> Run | StepResult | None:
        """Return the frame for the runtime, a result if the step must not run, or None if it is skipped."""
        scope = {**self._run.memory.scope(), **self._error_root()}
        try:
            if self._is_skipped(scope):
                return None
            if spent := self._run.budget.spent_up():
                return self._failed(Code.BUDGET_EXCEEDED, spent)
            return self._frame(scope)
        except BadReference as bad:
            return self._failed(Code.POLICY_VIOLATION, bad.detail)

    def _is_skipped(self, scope: Mapping[str, Any]) -> bool:
        when = self.step.when
        return self._recovers_from is None and when is not None and not holds(when, scope)

    def _frame(self, scope: Mapping[str, Any]) -> Run:
        step = self.step
        uses, declared = self._called()
        parameters = resolve(declared, scope, "recover.with" if self._recovers_from else "with")
        self._shown = self._shown_values(declared, parameters)
        return Run(
            step=step.path,
            uses=uses,
            parameters=parameters,
            attempt=self._number,
            seed=derive_seed(self._run.seed, step.position),
            timeout_s=step.timeout_s,
            idempotency_key=self._key(scope),
            variables=dict(self._run.memory.variables),
        )

    def _called(self) -> tuple[str, dict[str, Any]]:
        recovery = self.step.recover if self._recovers_from else None
        called = recovery or self.step
        return called.uses, dict(called.parameters)

    def _error_root(self) -> dict[str, Any]:
        """The root `error`, which only the parameters of a recovery node may refer to."""
        failure = self._recovers_from
        if failure is None:
            return {}
        error = {"code": failure.code, "message": failure.message, "step": self.step.path}
        return {"error": error}

    def _shown_values(self, declared: Mapping[str, Any], real: Mapping[str, Any]) -> Any:
        return shown_values(self._run.memory, declared, real, self._error_root())

    def _key(self, scope: Mapping[str, Any]) -> str:
        if self.step.idempotency_key is None:
            key = f"{self._run.memory.metadata.execution_id}:{self.step.path}"
        else:
            key = _key_text(resolve(self.step.idempotency_key, scope, "idempotency_key"))
        return f"{key}:recover" if self._recovers_from else key

    # --- after the runtime has answered
    def skipped(self) -> AttemptOutcome:
        """End the attempt because the step's condition did not hold."""
        result = StepResult.succeeded(step=self.step.path, attempt=self._number, output=None)
        return self._record(result, after_skip(self._run.plan, self.step.path))

    def interrupted(self, decided: StepDecision) -> AttemptOutcome:
        """End an attempt whose worker was lost while it ran and that may not run again."""
        unknown = self._failed(Code.OUTCOME_UNKNOWN, "Interrupted; it may not run again.")
        return self._record(unknown, decided, unbilled=True)

    def overdue(self) -> AttemptOutcome:
        """End the attempt because the run's time was used up before the step could begin."""
        return self.finish(self._failed(Code.TIMEOUT, OVERDUE), run_is_over=True)

    def answered(self, reply: ApprovalReply | None, silence: str) -> AttemptOutcome:
        """End the attempt with a person's reply; without one the step fails with the message `silence`."""
        if reply is None:
            return self.finish(self._failed(Code.TIMEOUT, silence))
        result = StepResult.succeeded(
            step=self.step.path, attempt=self._number, output=reply.output
        )
        return self.finish(result)

    def finish(
        self, result: StepResult, output: AttemptOutput | None = None, *, run_is_over: bool = False
    ) -> AttemptOutcome:
        """Check a result against the run's limits, decide on it, remember and mask it."""
        self._run.memory.learn(self.step.path, result.output, result.variables)
        if run_is_over and result.code is Code.TIMEOUT:
            result = replace(result, message=OVERDUE)
        if output and (refused := output.refused or self._refused_kinds(output)):
            result = self._failed(Code.POLICY_VIOLATION, refused)
        returned = dump(result.output) if result.code is None else b""
        result = self._checked(result, returned)
        decided = after_step(
            self._run.plan,
            result,
            seed=self._run.seed,
            recovers_from=Code(self._recovers_from.code) if self._recovers_from else None,
            run_is_over=run_is_over,
        )
        if result.code is not None:
            return self._record(result, decided, output=output, run_is_over=run_is_over)
        self._run.memory.remember(self.step.path, returned, result.variables)
        return self._record(result, decided, None if result.question else returned, output)

    def _checked(self, result: StepResult, returned: bytes) -> StepResult:
        if result.code is not None:
            return result
        broken = broken_rule(self._run, self.step, result, returned)
        return self._failed(*broken) if broken else result

    def _record(
        self,
        result: StepResult,
        decided: StepDecision,
        returned: bytes | None = None,
        output: AttemptOutput | None = None,
        *,
        run_is_over: bool = False,
        unbilled: bool = False,
    ) -> AttemptOutcome:
        memory = self._run.memory
        code, message, cause = self._stored_failure(result)
        if run_is_over or result.code in {Code.CANCELLED, Code.BUDGET_EXCEEDED}:
            # Also in a recovery: the run ends for this reason, not for the failure it recovers from.
            ended_by = result.code or "", memory.masker.mask(result.message)
        else:
            ended_by = code, message
        decided, run_code, run_message, outputs = self._run_end(decided, *ended_by)
        costs = self._costs(output)
        record = AttemptRecord(
            path=self.step.path,
            attempt=self._number,
            version=self._version,
            inputs=None if self._shown is None else _json(self._shown),
            code=code,
            message=message,
            cause=cause,
            question=memory.masker.mask(result.question),
            run_code=run_code,
            run_message=run_message,
            outputs=outputs,
            lines=self._lines(output),
            costs=costs,
            run_costs=self._run.budget.with_costs(costs) if costs else {},
            unbilled=unbilled,
            **self._output_fields(returned),
            **self._variable_fields(result),
        )
        return AttemptOutcome(result=result, decided=decided, record=record)

    def _stored_failure(self, result: StepResult) -> tuple[str, str, str]:
        """Code, message and cause to store with the step; a recovered step keeps those of its failure."""
        failure, mask = self._recovers_from, self._run.memory.masker.mask
        if failure is None:
            return result.code or "", mask(result.message), mask(result.cause or "")
        cause = f"recovery: {result.code}" if result.code else "recovered"
        if result.question:
            cause = "recovery: asked"
        return failure.code, failure.message, cause

    def _run_end(
        self, decided: StepDecision, code: str, message: str
    ) -> tuple[StepDecision, str, str, str | None]:
        """Add the run's code and message, or its outputs, if the run ends here."""
        if decided.outcome not in {None, ExecutionState.SUCCEEDED}:
            return decided, code, message, None
        if decided.next_step or not self._run.plan.outputs:
            return decided, "", "", None
        try:
            outputs = resolve(dict(self._run.plan.outputs), self._run.memory.scope(), "outputs")
            if self._run.memory.is_masked:
                # Only the shown values are stored: a run's outputs never hold a sensitive value.
                outputs = self._shown_values(self._run.plan.outputs, outputs)
        except BadReference as bad:
            failed = replace(decided, outcome=ExecutionState.FAILED, pause_s=0.0)
            message = self._run.memory.masker.mask(bad.detail)
            return failed, Code.POLICY_VIOLATION.value, message, None
        return decided, "", "", _json(outputs)

    def _lines(self, output: AttemptOutput | None) -> list[LogLine]:
        masker = self._run.memory.masker
        return [line.masked_by(masker) for line in output.take_lines()] if output else []

    def _costs(self, output: AttemptOutput | None) -> dict[str, Decimal]:
        knows = self._run.memory.masker.knows
        found = output.costs if output else {}
        return {kind: amount for kind, amount in found.items() if not knows(kind)}

    def _refused_kinds(self, output: AttemptOutput) -> str:
        if len(self._costs(output)) == len(output.costs):
            return ""
        # Kinds are summed up over runs and months, so they cannot be masked.
        return (
            "The step reported a cost whose kind contains a sensitive value; choose a fixed name."
        )

    def _output_fields(self, returned: bytes | None) -> dict[str, Any]:
        """The step's output as it is shown; sealed as well if any of it is masked."""
        if returned is None:
            return {}
        memory, path = self._run.memory, self.step.path
        real, shown = memory.output(path), memory.shown_output(path)
        if shown is real and not self.step.sensitive:
            return {"output": returned.decode()}
        return {"output": _json(shown), "sealed_output": self._run.seal(real)}

    def _variable_fields(self, result: StepResult) -> dict[str, Any]:
        """All variables of the run, if the step has set any."""
        if not result.variables:
            return {}
        memory = self._run.memory
        hidden = memory.hidden_variables()
        return {
            "variables": _json(memory.shown_variables()),
            "sealed_variables": self._run.seal(hidden) if hidden else None,
        }

    def _failed(self, code: Code, message: str) -> StepResult:
        return StepResult.failed(
            step=self.step.path, attempt=self._number, code=code, message=message
        )


def _key_text(value: Any) -> str:
    """Render a key as text. An empty key would be shared by every run of every tenant, so refuse it."""
    text = value if isinstance(value, str) else _json(value)
    if value is None or not text.strip():
        raise BadReference("idempotency_key: it is empty with this run's values.")
    if len(text) > MAX_KEY:
        raise BadReference(
            f"idempotency_key: it has {len(text)} characters with this run's values; use at most {MAX_KEY}."
        )
    return text


def _json(value: Any) -> str:
    return dump(value).decode()
