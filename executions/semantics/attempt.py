"""One attempt of a step: what it is given, and what its result comes to. No I/O.

Timing: background-worker. Model: sync. Guarantee: deterministic; the same memory and seed prepare the same attempt.
Failure: every way to fail becomes a StepResult. A worker and `isolane run --local` share this, so that a blueprint
means the same in both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions.resolution import evaluation_work, holds, resolve
from executions.blueprints.plan import Guarantee, PlannedStep
from executions.blueprints.work import Work
from executions.semantics.active_run import ActiveRun
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.attempt_record import AttemptRecord, LogLine
from executions.semantics.canonical_json import loads
from executions.semantics.decisions import Checkpoint, after_skip, after_step
from executions.semantics.masking import MASK
from executions.semantics.seeds import derive_seed
from executions.states import ExecutionState
from isolane.protocol import Run, dump
from isolane.results import Code, StepResult

MAX_KEY = 200  # characters, as in a blueprint
OVERDUE = "The run was ended at its own timeout."


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What a recovery node recovers from."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptOutcome:
    """What is written, and what follows."""

    result: StepResult
    record: AttemptRecord
    decided: Checkpoint


class Attempt:
    """Prepared before the runtime is asked, concluded after it has answered."""

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
        """What to ask the runtime for; a result if it must not be asked, none if the step is skipped."""
        scope = self._scope(self._run.memory.scope())
        try:
            if self._is_skipped(scope):
                return None
            if spent := self._run.budget.spent_up():
                return self._failed(Code.BUDGET_EXCEEDED, spent)
            return self._prepared(scope)
        except BadReference as bad:
            return self._failed(Code.POLICY_VIOLATION, bad.detail)

    def _is_skipped(self, scope: Mapping[str, Any]) -> bool:
        when = self.step.when
        return self._recovers_from is None and when is not None and not holds(when, scope)

    def _prepared(self, scope: Mapping[str, Any]) -> Run:
        step = self.step
        uses, declared = self._called()
        parameters = resolve(declared, scope, "recover.with" if self._recovers_from else "with")
        self._shown = self._shown_parameters(declared, parameters)
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

    def _scope(self, scope: dict[str, Any]) -> dict[str, Any]:
        failure = self._recovers_from
        if failure is None:
            return scope
        error = {"code": failure.code, "message": failure.message, "step": self.step.path}
        return {**scope, "error": error}

    def _shown_parameters(self, declared: Mapping[str, Any], real: Mapping[str, Any]) -> Any:
        memory = self._run.memory
        if not memory.has_sensitive:
            return memory.masker.masked_items(real) if memory.masker.has_secrets else real
        scope = self._scope(memory.shown_scope())
        work = evaluation_work()
        resolved = {
            name: _not_missing(_shown(value, scope, work), real[name])
            for name, value in declared.items()
        }
        return memory.masker.masked_items(resolved)

    def _key(self, scope: Mapping[str, Any]) -> str:
        if self.step.idempotency_key is None:
            key = f"{self._run.memory.metadata.execution_id}:{self.step.path}"
        else:
            key = _key_text(resolve(self.step.idempotency_key, scope, "idempotency_key"))
        return f"{key}:recover" if self._recovers_from else key

    # --- after the runtime has answered
    def skipped(self) -> AttemptOutcome:
        """The step's condition did not hold."""
        result = StepResult.succeeded(step=self.step.path, attempt=self._number, output=None)
        return self._concluded(result, after_skip(self._run.plan, self.step.path))

    def cut(self, decided: Checkpoint) -> AttemptOutcome:
        """Its worker was lost in the middle, and it may not run again."""
        unknown = self._failed(Code.OUTCOME_UNKNOWN, "Cut in the middle; it may not run again.")
        return self._concluded(unknown, decided, unbilled=True)

    def overdue(self) -> AttemptOutcome:
        """The run has used up its own time before the step could begin."""
        return self.concluded(self._failed(Code.TIMEOUT, OVERDUE), run_is_over=True)

    def answered(self, reply: ApprovalReply | None, silence: str) -> AttemptOutcome:
        """A person has answered what the attempt asked; or nobody has, and the step fails with this message."""
        if reply is None:
            return self.concluded(self._failed(Code.TIMEOUT, silence))
        result = StepResult.succeeded(
            step=self.step.path, attempt=self._number, output=reply.output
        )
        return self.concluded(result)

    def concluded(
        self, result: StepResult, said: AttemptOutput | None = None, *, run_is_over: bool = False
    ) -> AttemptOutcome:
        """What a result comes to: checked against the run's limits, decided upon, remembered and masked."""
        self._run.memory.learn(self.step.path, result.output, result.variables)
        if run_is_over and result.code is Code.TIMEOUT:
            result = replace(result, message=OVERDUE)
        if said and (refused := said.refused or self._refused_kinds(said)):
            result = self._failed(Code.POLICY_VIOLATION, refused)
        output = dump(result.output) if result.code is None else b""
        result = self._checked(result, output)
        decided = after_step(
            self._run.plan,
            result,
            seed=self._run.seed,
            recovers_from=Code(self._recovers_from.code) if self._recovers_from else None,
            run_is_over=run_is_over,
        )
        if result.code is not None:
            return self._concluded(result, decided, said=said, run_is_over=run_is_over)
        self._run.memory.remember(self.step.path, output, result.variables)
        return self._concluded(result, decided, None if result.question else output, said)

    def _checked(self, result: StepResult, output: bytes) -> StepResult:
        if result.code is not None:
            return result
        if excess := self._run.memory.excess(self.step.path, output, result.variables):
            return self._failed(Code.OUTPUT_TOO_LARGE, excess)
        if refused := self._leaks(output, result):
            return self._failed(Code.POLICY_VIOLATION, refused)
        asks, declared = bool(result.question), self.step.guarantee
        if declared is Guarantee.DETERMINISTIC and not asks and self._differs(output):
            return self._failed(
                Code.POLICY_VIOLATION,
                "The step is declared deterministic, but its output differs from the original run's.",
            )
        return result

    def _leaks(self, output: bytes, result: StepResult) -> str:
        """Say that a resource's secret would be kept, if so; a guard against accidents, not against malice."""
        masker = self._run.memory.masker
        if not masker.has_secrets:
            return ""
        kept = {"output": output.decode()}
        if result.variables:
            kept["variables"] = _json(result.variables)
        found = [name for name, text in kept.items() if masker.holds_secret(text)]
        if not found:
            return ""
        return f"The step's {' and '.join(found)} contain a secret of a resource; nothing of it was kept."

    def _differs(self, output: bytes) -> bool:
        original = self._run.original
        if original is None or self.step.path not in original:
            return False
        return bool(original[self.step.path] != loads(output))

    def _concluded(
        self,
        result: StepResult,
        decided: Checkpoint,
        output: bytes | None = None,
        said: AttemptOutput | None = None,
        *,
        run_is_over: bool = False,
        unbilled: bool = False,
    ) -> AttemptOutcome:
        memory = self._run.memory
        code, message, cause = self._told(result)
        if run_is_over or result.code in {Code.CANCELLED, Code.BUDGET_EXCEEDED}:
            # Also while it recovered: that is why the run ends.
            ended_by = result.code or "", memory.masker.mask(result.message)
        else:
            ended_by = code, message
        decided, run_code, run_message, outputs = self._ended(decided, *ended_by)
        costs = self._costs(said)
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
            lines=self._lines(said),
            costs=costs,
            run_costs=self._run.budget.with_costs(costs) if costs else {},
            unbilled=unbilled,
            **self._output(output),
            **self._variables(result),
        )
        return AttemptOutcome(result=result, decided=decided, record=record)

    def _told(self, result: StepResult) -> tuple[str, str, str]:
        """Code, message and cause as they are stored with the step; a recovered step keeps those of its failure."""
        failure, mask = self._recovers_from, self._run.memory.masker.mask
        if failure is None:
            return result.code or "", mask(result.message), mask(result.cause or "")
        cause = f"recovery: {result.code}" if result.code else "recovered"
        if result.question:
            cause = "recovery: asked"
        return failure.code, failure.message, cause

    def _ended(
        self, decided: Checkpoint, code: str, message: str
    ) -> tuple[Checkpoint, str, str, str | None]:
        """What the run's end adds: its code and message, or its outputs."""
        if decided.outcome not in {None, ExecutionState.SUCCEEDED}:
            return decided, code, message, None
        if decided.next_step or not self._run.plan.outputs:
            return decided, "", "", None
        try:
            outputs = resolve(dict(self._run.plan.outputs), self._run.memory.scope(), "outputs")
            if self._run.memory.is_masked:
                # What is shown is all that is kept: a run's outputs never hold what is sensitive.
                outputs = self._shown_parameters(self._run.plan.outputs, outputs)
        except BadReference as bad:
            failed = replace(decided, outcome=ExecutionState.FAILED, pause_s=0.0)
            message = self._run.memory.masker.mask(bad.detail)
            return failed, Code.POLICY_VIOLATION.value, message, None
        return decided, "", "", _json(outputs)

    def _lines(self, said: AttemptOutput | None) -> list[LogLine]:
        masker = self._run.memory.masker
        return [line.masked_by(masker) for line in said.take_lines()] if said else []

    def _costs(self, said: AttemptOutput | None) -> dict[str, Decimal]:
        knows = self._run.memory.masker.knows
        found = said.costs if said else {}
        return {kind: amount for kind, amount in found.items() if not knows(kind)}

    def _refused_kinds(self, said: AttemptOutput) -> str:
        if len(self._costs(said)) == len(said.costs):
            return ""
        # A kind is summed up over runs and months: it cannot be masked.
        return (
            "The step reported a cost whose kind contains what is sensitive; choose a fixed name."
        )

    def _output(self, output: bytes | None) -> dict[str, Any]:
        """The step's output as it is shown, and sealed beside it if that is not all of it."""
        if output is None:
            return {}
        memory, path = self._run.memory, self.step.path
        real, shown = memory.output(path), memory.shown_output(path)
        if shown is real and not self.step.sensitive:
            return {"output": output.decode()}
        return {"output": _json(shown), "sealed_output": self._run.seal(real)}

    def _variables(self, result: StepResult) -> dict[str, Any]:
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


def _shown(value: Any, scope: Mapping[str, Any], work: Work) -> Any:
    try:
        return resolve(value, scope, work=work)
    except BadReference:  # what is masked may not fit the expression
        return MASK


def _not_missing(shown: Any, real: Any) -> Any:
    """What is there and not found in what is masked is masked itself."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return {name: _not_missing(value, real.get(name)) for name, value in shown.items()}
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [_not_missing(*pair) for pair in zip(shown, real, strict=True)]
    return MASK if shown is None and real is not None else shown


def _key_text(value: Any) -> str:
    """As references within a text are written. What is missing would be one key for all runs of all tenants."""
    text = value if isinstance(value, str) else _json(value)
    if value is None or not text.strip():
        raise BadReference("idempotency_key: it comes to nothing on this run's values.")
    if len(text) > MAX_KEY:
        raise BadReference(
            f"idempotency_key: it comes to {len(text)} characters; use at most {MAX_KEY}."
        )
    return text


def _json(value: Any) -> str:
    return dump(value).decode()
