"""The database does not answer when a step has ended: what it came to is kept and written when it does."""

from dataclasses import replace
from typing import Any

import pytest
from celery.exceptions import Ignore
from django.db import OperationalError

from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from tenants import statement
from tenants.scope import TenantRef
from tenants.statement import Parameters, Statement
from tests.factories import costs_of, run_of, start, step_of, steps_of
from tests.integration.executions.statements import is_named
from tests.integration.executions.worker.driving import costing, run_link, runs_of, script, setting

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

TRIES = 7  # more than one statement takes by itself


@pytest.fixture(autouse=True)
def _at_once(boot: WorkerBoot) -> None:
    boot.clocks = replace(boot.clocks, repeat=1e-6)


def refuse_checkpoints(monkeypatch: pytest.MonkeyPatch, times: int, *, written: bool) -> list[str]:
    """The connection is lost so often at a checkpoint, before it is written, or at first after it was."""
    real = statement._fetch_row
    refused: list[str] = []

    def fetch(connection: Any, asked: Statement[Any], parameters: Parameters) -> Any:
        if not is_named(asked.text, "checkpoint") or len(refused) == times:
            return real(connection, asked, parameters)
        if written and not refused:
            real(connection, asked, parameters)
        refused.append(asked.text)
        raise OperationalError("the server is away")

    monkeypatch.setattr(statement, "_fetch_row", fetch)
    return refused


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("express", [False, True])
def test_a_checkpoint_is_repeated_until_the_database_is_back(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    monkeypatch: pytest.MonkeyPatch,
    express: bool,
    written: bool,
) -> None:
    script(boot, flaky=costing(2, setting({"n": 1}, v=1)))
    placement = start(
        acme, boot, {"uses": "flaky", "guarantee": "at_most_once"}, {}, express=express
    )
    refused = refuse_checkpoints(monkeypatch, TRIES, written=written)
    run_link(links, placement, "s1")
    if not express:
        run_link(links, placement, "s2")
    assert len(refused) == TRIES
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.variables) == (ExecutionState.SUCCEEDED, {"v": 1})
    assert [(run.step, run.attempt) for run in runs_of(boot, placement)] == [
        ("s1", 1), ("s2", 1),
    ]  # fmt: skip
    assert costs_of(acme, placement.execution_id) == [("s1", 1, "tokens", 2)]


@pytest.mark.parametrize("how", ["old lease", "lost"])
def test_not_when_others_may_have_stepped_in(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    placement = start(acme, boot, {}, {})
    refuse_checkpoints(monkeypatch, TRIES, written=False)
    links.begin("s1", placement, "s1")
    context = boot.contexts.get(placement.key)
    assert context is not None

    def strike(_seconds: float) -> None:
        if how == "lost":
            context.lose()
        else:
            boot.renewed_at -= boot.clocks.self_fence + 1

    monkeypatch.setattr("executions.worker.links.step_runner.time.sleep", strike)
    with pytest.raises(Ignore):
        links.run("s1", "s1", [])
    assert context.lost
    assert steps_of(acme, placement.execution_id) == {"s1": "running", "s2": "pending"}
    assert step_of(acme, placement.execution_id, "s1").attempt == 1
