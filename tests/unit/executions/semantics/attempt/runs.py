"""A run of some steps in memory, and what its steps may come to."""

from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from executions.blueprints.plan import plan
from executions.models.sealing import seal
from executions.semantics.active_run import ActiveRun
from executions.semantics.attempt import Attempt, Failure
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory, Metadata
from isolane.protocol import Cost, Log, Run
from isolane.results import Code, StepResult

EXECUTION = UUID(int=7)
SEED = 42
BROKE = Failure(code="UNKNOWN_ERROR", message="broke")
SENSITIVE = {"properties": {"password": {"type": "string", "sensitive": True}}}


def make_run(
    *steps: dict[str, Any],
    given: dict[str, Any] | None = None,
    past: dict[str, Any] | None = None,
    variables: dict[str, Any] | None = None,
    original: dict[str, Any] | None = None,
    budget: Budget | None = None,
    **fields: Any,
) -> ActiveRun:
    """A run of the steps one, two, …, of which some have succeeded in the past."""
    names = ("one", "two", "three")
    numbered = [
        {"key": key, "uses": "work", **step} for key, step in zip(names, steps, strict=False)
    ]
    flow = plan({"name": "flow", "steps": numbered, **fields})
    memory = ExecutionMemory(
        flow,
        metadata=Metadata(
            tenant_id=1, execution_id=EXECUTION, blueprint="flow", blueprint_version=1
        ),
        inputs=given or {},
        outputs=past or {},
        variables=variables or {},
    )
    return ActiveRun(
        plan=flow,
        memory=memory,
        budget=budget or Budget(),
        seed=SEED,
        isolation="shared",
        seal=partial(seal, EXECUTION),
        original=original,
    )


def prepared(attempt: Attempt) -> Run:
    frame = attempt.prepare()
    assert isinstance(frame, Run)
    return frame


def refused(attempt: Attempt) -> StepResult:
    result = attempt.prepare()
    assert isinstance(result, StepResult)
    return result


def done(output: Any = None, path: str = "one", **fields: Any) -> StepResult:
    return StepResult.succeeded(step=path, attempt=1, output=output, **fields)


def failed(code: Code = Code.UNKNOWN_ERROR, message: str = "broke", **fields: Any) -> StepResult:
    return StepResult.failed(step="one", attempt=1, code=code, message=message, **fields)


def output_of(*frames: Log | Cost) -> AttemptOutput:
    found = AttemptOutput(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    for frame in frames:
        found.add(frame)
    return found


def hiding(*steps: dict[str, Any], **fields: Any) -> ActiveRun:
    """A run that was given a password."""
    return make_run(*steps, given={"password": "hunter2", "n": 4711}, inputs=SENSITIVE, **fields)
