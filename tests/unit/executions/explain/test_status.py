"""A run's status is described with its reason, in every state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from executions.explain.limits import WAYS_OUT
from executions.explain.status import QueueStatus, RunStatus, StepStatus, describe_status
from executions.states import ExecutionState, StepState

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
AGO = NOW - timedelta(seconds=30)
LATER = NOW + timedelta(seconds=30)
SINCE, UNTIL = "2026-03-04 09:59:30 UTC", "2026-03-04 10:00:30 UTC"
PAY = StepStatus(path="pay", state=StepState.RUNNING, attempt=2, started_at=AGO)
NEXT = StepStatus(path="pay", state=StepState.PENDING)
AGAIN = replace(NEXT, code="RATE_LIMIT_ERROR", retry_at=LATER)
QUEUE = QueueStatus(since=AGO, held=1, allowed=5)
FULL = replace(QUEUE, held=5)
E = ExecutionState


@pytest.mark.parametrize(
    ("state", "facts", "text"),
    [
        (
            E.QUEUED, {"queue": QUEUE, "step": NEXT},
            f"The run has waited for a slot since {SINCE}; it gets the next free one on a suitable worker.",
        ),
        (
            E.QUEUED, {"queue": FULL, "step": NEXT},
            f"The run has waited for a slot since {SINCE}: its tenant's runs hold all of their slots (5).",
        ),
        (
            E.QUEUED, {"queue": FULL, "step": NEXT, "message": "Waits for a worker that offers its nodes."},
            f"The run has waited for a slot since {SINCE}. Waits for a worker that offers its nodes.",
        ),
        (E.QUEUED, {"step": NEXT, "worker": "old"}, "The run has a slot; step pay is about to begin."),
        (E.QUEUED, {}, "The run has a slot."),
        (
            E.RUNNING, {"step": PAY, "worker": "w1"},
            f"The run has been at step pay on w1 since {SINCE} (attempt 2).",
        ),
        (
            E.RUNNING, {"step": replace(PAY, recovering=True), "worker": "w1"},
            f"The run has been at the recovery node of step pay on w1 since {SINCE} (attempt 2).",
        ),
        (E.RUNNING, {"step": NEXT, "worker": "w1"}, "The run holds a slot on w1; step pay is next."),
        (E.RUNNING, {"worker": "w1"}, "The run holds a slot on w1."),
        (
            E.RUNNING, {"step": replace(AGAIN, state=StepState.RETRYING), "worker": "w1"},
            (f"The run holds a slot on w1 and waits until {UNTIL} to retry step pay, which failed with"
            " RATE_LIMIT_ERROR."),
        ),
        (
            E.RUNNING, {"step": replace(PAY, retry_at=AGO), "worker": "w1"},
            f"The run has been at step pay on w1 since {SINCE} (attempt 2).",
        ),
        (
            E.RUNNING, {"step": PAY, "worker": "w1", "cancel_requested": True},
            "The run is being cancelled; step pay on w1 has been asked to stop.",
        ),
        (E.QUEUED, {"step": NEXT, "cancel_requested": True}, "The run is being cancelled."),
        (
            E.RUNNING, {"outcome": "succeeded", "cancel_requested": True},
            "The run is about to succeed. Its context is being closed.",
        ),
        (
            E.RUNNING, {"outcome": "failed", "code": "TIMEOUT", "message": "too slow", "step": PAY},
            (f"The run is about to fail with TIMEOUT at step pay: too slow. {WAYS_OUT['TIMEOUT']}. Its context is being"
            " closed."),
        ),
        (
            E.WAITING, {"wake_at": LATER, "step": NEXT},
            f"The run waits, without a slot, until {UNTIL} and then goes on with step pay.",
        ),
        (E.WAITING, {"wake_at": LATER}, f"The run waits, without a slot, until {UNTIL} and then ends."),
        (
            E.WAITING, {"wake_at": LATER, "step": AGAIN},
            f"The run waits, without a slot, until {UNTIL} to retry step pay, which failed with RATE_LIMIT_ERROR.",
        ),
        (
            E.SUSPENDED, {"wake_at": LATER, "step": NEXT, "question": "Pay 30?"},
            f"The run waits, without a slot, until {UNTIL} for a person's answer to step pay: Pay 30?",
        ),
        (
            E.SUSPENDED, {"wake_at": LATER, "step": NEXT},
            f"The run waits, without a slot, until {UNTIL} for a person's answer to step pay.",
        ),
        (
            E.SUCCEEDED, {"outcome": "succeeded", "started_at": AGO, "finished_at": NOW},
            "The run succeeded after 30 s.",
        ),
        (
            E.FAILED,
            {"outcome": "failed", "code": "UNKNOWN_ERROR", "message": "KeyError", "step": PAY, "started_at": AGO,
             "finished_at": NOW},
            "The run failed with UNKNOWN_ERROR at step pay after 30 s: KeyError.",
        ),
        (
            E.FAILED, {"outcome": "failed", "code": "CATALOGUE_MISSING", "finished_at": NOW},
            "The run failed with CATALOGUE_MISSING.",
        ),
        (
            E.TIMED_OUT, {"outcome": "timed_out", "code": "TIMEOUT", "step": PAY, "finished_at": NOW},
            f"The run timed out with TIMEOUT at step pay. {WAYS_OUT['TIMEOUT']}.",
        ),
        (
            E.FAILED,
            {"outcome": "failed", "code": "RAM_EXCEEDED", "message": "killed", "step": PAY, "finished_at": NOW,
             "cpu_seconds": 75.04, "peak_ram_mb": 511.96},
            ("The run failed with RAM_EXCEEDED at step pay: killed. The limit is ram_mb, the stricter of its"
            " blueprint's and its tenant's: use less, or raise it. It has used 1.3 min of processor time, and 512 MiB"
            " of RAM at most."),
        ),
        (
            E.SUCCEEDED, {"outcome": "succeeded", "finished_at": NOW, "cpu_seconds": 0.02, "peak_ram_mb": 21.34},
            "The run succeeded. It has used 20 ms of processor time, and 21.3 MiB of RAM at most.",
        ),
        (
            E.SUCCEEDED, {"outcome": "succeeded", "code": "TIMEOUT", "finished_at": NOW},
            "The run succeeded.",
        ),
        (
            E.CANCELLED,
            {"outcome": "cancelled", "code": "CANCELLED", "message": "Cancelled by ann.", "finished_at": NOW},
            "The run was cancelled: Cancelled by ann.",
        ),
    ],
)  # fmt: skip
def test_a_standing_is_told(state: ExecutionState, facts: dict[str, Any], text: str) -> None:
    assert describe_status(RunStatus(at=NOW, state=state, **facts)) == text


@pytest.mark.parametrize("state", ExecutionState)
def test_every_state_is_told_from_the_barest_facts(state: ExecutionState) -> None:
    described = describe_status(RunStatus(at=NOW, state=state))
    assert described.startswith("The run ")
    assert described.endswith(".")


@pytest.mark.parametrize("state", list(ExecutionState))
def test_the_level_of_isolation_and_its_reason_are_named(state: ExecutionState) -> None:
    told = describe_status(
        RunStatus(at=NOW, state=state, isolation="process", isolation_reason="tenant_untrusted")
    )
    reason = "the tenant is not trusted, and shared is for trusted tenants"
    assert told.endswith(f" Its level of isolation is process: {reason}.")
