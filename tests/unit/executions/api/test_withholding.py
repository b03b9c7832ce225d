"""Callers that may not look into a run are answered in the platform's own words."""

from datetime import UTC, datetime
from typing import Any

import pytest

from executions.api.withholding import event_without_data, status_without_data
from executions.explain.events import describe_event
from executions.explain.status import QueueStatus, RunStatus, describe_status
from executions.states import ExecutionState
from tests.unit.executions.explain.test_events import CASES

AT = datetime(2026, 3, 4, tzinfo=UTC)
SECRET = "hunter2"
TENANTS_OWN = {"message", "actor", "host", "anything"}


@pytest.mark.parametrize(("kind", "step", "data", "text"), CASES)
def test_an_event_is_told_without_what_is_the_tenants(
    kind: str, step: str, data: dict[str, Any], text: str
) -> None:
    whole = {"kind": kind, "step": step, "data": {**data, **dict.fromkeys(TENANTS_OWN, SECRET)}}
    shown = event_without_data(whole)
    told = describe_event(shown["kind"], shown["step"], shown["data"])
    assert SECRET not in told
    assert TENANTS_OWN & set(data) or told == text


@pytest.mark.parametrize("state", ExecutionState)
@pytest.mark.parametrize("outcome", ["", "failed"])
def test_a_standing_is_told_without_messages_and_questions(
    state: ExecutionState, outcome: str
) -> None:
    code = "TIMEOUT" if outcome else ""
    queue = QueueStatus(since=AT, held=0, allowed=1)
    run = RunStatus(
        at=AT, state=state, outcome=outcome, code=code, message=SECRET, question=SECRET, queue=queue
    )
    is_platforms = state is ExecutionState.QUEUED and not outcome
    assert (SECRET in describe_status(status_without_data(run))) is is_platforms
