"""An open context without a database: of a run with two steps and no resources."""

from executions.blueprints.plan import plan
from executions.semantics.active_run import ActiveRun
from executions.semantics.budgets import Budget
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.transitions.claim import Claim
from executions.worker.links.context import OpenContext
from isolane.protocol import dump
from tests.factories import LEVEL, document
from tests.placements import a_placement

CLAIM = Claim(attempt=1, version=1)


def a_context(run: str = "e1", *, epoch: int = 1) -> OpenContext:
    """The context of a placement of this run, as its first link makes it."""
    placement = a_placement(run, epoch=epoch)
    flow = plan(document("one", "two"))
    metadata = Metadata(
        tenant_id=placement.tenant_id,
        execution_id=placement.execution_id,
        blueprint=flow.name,
        blueprint_version=1,
    )
    memory = ExecutionMemory(flow, metadata=metadata, inputs={}, outputs={}, variables={})
    return OpenContext(
        placement=placement,
        run=ActiveRun(
            plan=flow,
            memory=memory,
            budget=Budget(),
            seed=1,
            isolation=LEVEL,
            seal=dump,
            requested_by="user:ann",
            request_id="r1",
        ),
    )
