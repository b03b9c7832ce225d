"""The end of a placement in its two texts: with the ledger, or without a look at it."""

from collections.abc import Callable

import psycopg
import pytest

from executions.models import Execution
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.transitions.settlement import UNKNOWN, Settlement
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.statements import counted, is_named

Server = psycopg.Connection[tuple[object, ...]]
END = PlacementEnd(reason=EndReason.WORKER_DRAINING)
pytestmark = pytest.mark.usefixtures("neighbour")

ENDS: dict[str, Callable[[Placement, Settlement | None], object]] = {
    "close": close_execution,
    "hand_back": lambda run, settlement: hand_back(run, END, settlement=settlement),
    "restart": lambda run, settlement: restart(
        run, reason=EndReason.RUNTIME_ENDED, settlement=settlement
    ),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("settlement", [None, UNKNOWN])
def test_it_is_one_statement_and_looks_at_the_ledger_only_to_settle(
    acme: TenantRef,
    claimed: Placement,
    superuser: Server,
    name: str,
    settlement: Settlement | None,
) -> None:
    with tenant_scope(acme):
        if name == "close":
            set_outcome(claimed, ExecutionState.FAILED, code="", message="")
        Execution.objects.exists()  # the scope is entered
        with counted(superuser) as statements:
            assert ENDS[name](claimed, settlement)
    (text,) = statements
    assert is_named(text, name if settlement is None else f"{name}_and_settle")
    assert ("executions_resourcerecord" in text) is (settlement is not None)
