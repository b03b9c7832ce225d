"""`isolane executions resources` and `unclean`."""

from datetime import UTC, datetime

import pytest

from executions.models import Execution, ResourceRecord
from executions.states import ExecutionState
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_boot, make_run
from tests.integration.orchestrator.cli.conftest import Isolane

AT = datetime(2026, 1, 1, tzinfo=UTC)
STEERING = "\x1b[2J[/red]"  # for the terminal, and for what draws tables


@pytest.mark.parametrize("field", ["resource_id", "type", "definition", "step", "error"])
def test_what_others_wrote_is_shown_as_text(isolane: Isolane, acme: TenantRef, field: str) -> None:
    make_boot()
    run = make_run(acme)
    said = {"resource_id": "database_1", "type": "database", "definition": "d", "step": "one"}
    with tenant_scope(acme):
        ResourceRecord.objects.create(
            execution_id=run, epoch=1, name="db", opened_at=AT, **{**said, field: STEERING}
        )
        Execution.objects.filter(pk=run).update(state=ExecutionState.RUNNING)
        Execution.objects.filter(pk=run).update(
            state=ExecutionState.SUCCEEDED, outcome=ExecutionState.SUCCEEDED, finished_at=AT
        )
    shown = isolane("executions", "resources", f"exec_{run}", "--tenant", "acme")
    assert r"\u001b[2J[/red]" in shown.output
    assert "not clean: 1 allocated, 0 gone, 1 open" in shown.output
    listed = isolane("executions", "unclean", "--tenant", "acme")
    assert listed.output.endswith("1 unclean\n")
    assert "\x1b" not in shown.output + listed.output
    assert (shown.exit_code, listed.exit_code) == (1, 1)
