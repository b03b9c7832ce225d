"""The checkpoint: how an attempt ended, the step that is next and, at the end, the run's outcome; one statement."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

from executions.semantics.attempt_record import AttemptRecord
from executions.semantics.decisions import StepDecision
from executions.semantics.resource_tracker import TrackedResource
from executions.states import TERMINAL_STEP
from executions.transitions.checkpoint_statement import (
    WRITTEN_CHECKPOINT,
    CheckpointRow,
    checkpoint_statement,
)
from executions.transitions.claim import Claim, ClaimRow, claim_of
from executions.transitions.fence import fetch_repeatedly
from executions.transitions.log_lines import line_columns
from executions.transitions.record_parts import tracked_as_json
from resources.placement import Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The checkpoint is in the database."""

    version: int
    monthly: Mapping[str, Decimal]  # what the tenant has spent this month of the kinds just spent
    claim: Claim | None = None  # of the next step, if that was asked for and could be


def write_checkpoint(
    placement: Placement,
    record: AttemptRecord,
    decided: StepDecision,
    *,
    claim_next_for: str = "",
    tracked: Sequence[TrackedResource] = (),
    may_repeat: Callable[[], bool] = lambda: False,
) -> Written | None:
    """Write it; none means that the fence or the version refused, and nothing was written.

    `claim_next_for`: the worker's name, if the step that follows is to be claimed with it. `tracked`: what has become
    of the run's resources. `may_repeat`: asked, and waited for, after the database did not answer: what a step came to
    must not be lost with a connection.
    """
    parameters = {**placement.parameters(), **_decision(decided), **_record(record)}
    parameters |= {"claims": bool(claim_next_for), "worker": claim_next_for}
    if tracked:
        parameters["tracked"] = tracked_as_json(tracked)
    statement = checkpoint_statement(
        logs=bool(record.lines),
        costs=bool(record.costs),
        variables=record.variables is not None,
        outputs=record.outputs is not None,
        asks=bool(record.question),
        claims=bool(claim_next_for),
        tracked=bool(tracked),
    )
    asked_at = time.monotonic()
    # After a lost connection an earlier try may have been written: then our own token is found.
    row = fetch_repeatedly(
        lambda: statement.fetch(parameters) or WRITTEN_CHECKPOINT.fetch(parameters), may_repeat
    )
    if row is None:
        return None
    return Written(
        version=row.version,
        monthly=_amounts(row.monthly) if row.monthly else {},
        claim=_next_claim(row, asked_at=asked_at),
    )


def _next_claim(row: CheckpointRow, *, asked_at: float) -> Claim | None:
    if row.attempt is None:
        return None
    claimed = ClaimRow(
        version=row.version,
        attempt=row.attempt,
        left_s=row.left_s or 0.0,
        wait_s=row.wait_s,
        recovering=bool(row.recovering),
        code=row.code or "",
        message=row.message or "",
    )
    return claim_of(claimed, asked_at=asked_at)


def _amounts(text: str) -> dict[str, Decimal]:
    """Exact, as `_as_json` writes them."""
    amounts: dict[str, Decimal] = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return amounts


def _decision(decided: StepDecision) -> dict[str, Any]:
    return {
        "state": decided.state.value,
        "ended": decided.state in TERMINAL_STEP,
        "next": decided.next_step,
        "outcome": decided.outcome.value if decided.outcome else "",
        "retry_s": decided.retry_s,
        "wake_s": decided.wake_s or None,
        "recovering": decided.recovering,
    }


def _record(record: AttemptRecord) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "path": record.path,
        "attempt": record.attempt,
        "version": record.version,
        "inputs": record.inputs,
        "output": record.output,
        "sealed_output": record.sealed_output,
        "code": record.code,
        "message": record.message,
        "cause": record.cause,
        "question": record.question,
        "unbilled": record.unbilled,
        "run_code": record.run_code,
        "run_message": record.run_message,
        "lines": len(record.lines),
        "token": uuid4(),
    }
    if record.lines:
        parameters |= line_columns(record.lines)
    if record.costs:
        parameters |= {
            "kinds": list(record.costs),
            "amounts": list(record.costs.values()),
            "costs": _as_json(record.run_costs),
        }
    if record.variables is not None:
        parameters |= {"variables": record.variables, "sealed_variables": record.sealed_variables}
    if record.outputs is not None:
        parameters["outputs"] = record.outputs
    return parameters


def _as_json(amounts: Mapping[str, Decimal]) -> str:
    """Exact: money must not pass through a float. Kinds are plain names."""
    return "{" + ", ".join(f'"{kind}": {amount:f}' for kind, amount in amounts.items()) + "}"
