"""executions.models.constraints: the database itself refuses unknown states."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from executions.models import Execution, Step
from executions.states import TERMINAL_EXECUTION, ExecutionState, StepState
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_run
from tests.transition_guard import Server, unguarded

pytestmark = pytest.mark.usefixtures("neighbour", "broker", "_any_state")
NOW = timezone.now()


@pytest.fixture
def _any_state(acme: TenantRef, superuser: Server) -> Iterator[None]:
    """The constraints are asked alone: which state may follow which is not theirs to say."""
    with unguarded(superuser, acme.schema):
        yield


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"state": "asleep"}, "execution_state_known"),
        ({"outcome": "asleep"}, "execution_outcome_known"),
        ({"outcome": "running"}, "execution_outcome_known"),
        ({"state": "running", "finished_at": NOW}, "execution_finished_when_terminal"),
        ({"state": "failed", "finished_at": None}, "execution_finished_when_terminal"),
    ],
)
def test_a_run_that_cannot_be(acme: TenantRef, fields: dict[str, Any], constraint: str) -> None:
    make_run(acme)
    with tenant_scope(acme), pytest.raises(IntegrityError, match=constraint):
        Execution.objects.update(**fields)


@pytest.mark.parametrize("state", ExecutionState.values)
def test_every_state_and_outcome_of_a_run_can_be(acme: TenantRef, state: str) -> None:
    make_run(acme)
    ended = state in TERMINAL_EXECUTION
    fields = {
        "state": state,
        "outcome": state if ended else "",
        "finished_at": NOW if ended else None,
    }
    with tenant_scope(acme):
        assert Execution.objects.update(**fields) == 1


@pytest.mark.parametrize("state", [*StepState.values, "asleep"])
def test_states_of_a_step(acme: TenantRef, state: str) -> None:
    make_run(acme, "one")
    with tenant_scope(acme):
        if state == "asleep":
            with pytest.raises(IntegrityError, match="step_state_known"):
                Step.objects.update(state=state)
        else:
            assert Step.objects.update(state=state) == 1
