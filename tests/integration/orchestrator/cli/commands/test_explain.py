"""`isolane explain`: the story of a run on the terminal, with a tenant's data for its own callers only."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from executions.explain.formatting import sentence
from executions.explain.limits import WAYS_OUT
from executions.models import Execution, ExecutionEvent
from executions.selectors.executions import parse_id
from foundation.errors import InvalidInput, NotFound, Unauthenticated
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import offer_nodes, publish_order, submit_order
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.orchestrator.cli.test_runs import key_of

DATA = "hunter2"
AT = datetime(2026, 3, 4, 23, 59, 59, 120_000, tzinfo=UTC)
HAPPENED: list[tuple[str, dict[str, Any]]] = [
    ("step.started", {"attempt": 1, "epoch": 1, "worker": "w1@host"}),
    ("step.progress", {"attempt": 1, "fraction": 0.5, "message": f"{DATA}\x1b[2J"}),
    ("step.failed", {"attempt": 1, "code": "TIMEOUT", "ms": 30_000}),
]
ENDED = "The run failed with TIMEOUT at step fetch after 30 s"
LEVEL = "Its level of isolation is shared: the tenant requires it."
MORE = f"{sentence(WAYS_OUT['TIMEOUT'])} {LEVEL}"


@pytest.fixture
def run(broker: "redis.Redis", acme: TenantRef, globex: TenantRef) -> str:
    """A failed run of acme whose events and message hold data, over midnight; globex has one, too."""
    offer_nodes()
    publish_order(acme, globex)
    submit_order(globex)
    run = submit_order(acme)
    with tenant_scope(acme):
        mine = ExecutionEvent.objects.filter(execution_id=parse_id(run))
        mine.update(at=AT)
        for number, (kind, data) in enumerate(HAPPENED, start=2):
            ExecutionEvent.objects.create(
                execution_id=parse_id(run), sequence=number, at=AT + timedelta(seconds=number - 1),
                kind=kind, step="fetch", data=data,
            )  # fmt: skip
        Execution.objects.filter(pk=parse_id(run)).update(
            state="failed", outcome="failed", code="TIMEOUT", message=f"{DATA}\x1b[2J",
            started_at=AT, finished_at=AT + timedelta(seconds=30),
        )  # fmt: skip
    return run


def test_it_is_told_in_order_and_cannot_steer_the_terminal(
    isolane: Isolane, run: str, acme: TenantRef
) -> None:
    told = isolane("explain", run, "--tenant", "acme", "--api-key", key_of(acme, role=Role.VIEWER))
    assert told.stdout.splitlines() == [
        "2026-03-04",
        "23:59:59.120  Submitted.",
        "2026-03-05",
        "00:00:00.120  Step fetch began (attempt 1).",
        rf"00:00:01.120  Step fetch is at 50%: {DATA}\u001b[2J.",
        "00:00:02.120  Step fetch failed with TIMEOUT after 30 s (attempt 1).",
        rf"now: {ENDED}: {DATA}\u001b[2J. {MORE}",
    ]
    assert told.stderr == ""


def test_without_a_key_it_is_told_in_the_platforms_words(isolane: Isolane, run: str) -> None:
    told = isolane("explain", run, "--tenant", "acme")
    assert DATA not in told.output
    assert "00:00:01.120  Step fetch is at 50%.\n" in told.stdout
    assert told.stdout.endswith(f"now: {ENDED}. {MORE}\n")
    assert "--api-key or ISOLANE_API_KEY" in told.stderr
    as_json = isolane("explain", run, "--tenant", "acme", "--json")
    assert DATA not in as_json.output


def test_programs_get_objects(isolane: Isolane, run: str, acme: TenantRef) -> None:
    told = isolane("explain", run, "--tenant", "acme", "--json", "--api-key", key_of(acme))
    *events, last = (json.loads(line) for line in told.stdout.splitlines())
    assert [event["sequence"] for event in events] == [1, 2, 3, 4]
    assert events[1] == {
        "sequence": 2, "at": "2026-03-05T00:00:00.120000Z", "kind": "step.started", "step": "fetch",
        "text": "Step fetch began (attempt 1).",
    }  # fmt: skip
    assert last == {"state": "failed", "now": f"{ENDED}: {DATA}\x1b[2J. {MORE}"}


@pytest.mark.parametrize("batch", [1, 2, 4, 5])
def test_a_long_story_is_read_in_pieces(
    isolane: Isolane, run: str, acme: TenantRef, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = ("explain", run, "--tenant", "acme", "--api-key", key_of(acme))
    whole = isolane(*explain).stdout
    monkeypatch.setattr("orchestrator.cli.commands.explain.BATCH", batch)
    assert isolane(*explain).stdout == whole


def test_another_tenants_run_is_not_found(
    isolane: Isolane, run: str, acme: TenantRef, globex: TenantRef
) -> None:
    with pytest.raises(NotFound, match=f"There is no execution {run}"):
        isolane("explain", run, "--tenant", "globex")
    with pytest.raises(NotFound, match=f"There is no execution {run}"):
        isolane("explain", run, "--tenant", "acme", "--api-key", key_of(acme, "payroll"))
    with pytest.raises(Unauthenticated, match="not one of tenant 'acme'"):
        isolane("explain", run, "--tenant", "acme", "--api-key", key_of(globex))
    with pytest.raises(NotFound, match="nobody"):
        isolane("explain", run, "--tenant", "nobody")
    with pytest.raises(InvalidInput, match="is not an execution id"):
        isolane("explain", "exec_1", "--tenant", "globex")
