"""Data of runs on the command line: for callers with the right, and nobody else."""

import json
from typing import Any

import pytest
import redis
from django.utils import timezone

from executions.models import CostRecord, Execution, ExecutionEvent, Step, StepLog
from executions.selectors.executions import parse_id
from foundation.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.executions.api.runs import offer_nodes, publish_order, submit_order
from tests.integration.orchestrator.cli.conftest import Isolane
from tests.integration.orchestrator.cli.test_runs import key_of
from tests.transition_guard import Server, unguarded

DATA = "hunter2"


@pytest.fixture
def run(broker: "redis.Redis", acme: TenantRef, globex: TenantRef) -> str:
    """A failed run of acme whose every field holds data; globex has one, too."""
    offer_nodes()
    publish_order(acme, globex)
    submit_order(globex)
    run = submit_order(acme)
    execution_id, now = parse_id(run), timezone.now()
    with tenant_scope(acme):
        Step.objects.update(
            inputs={"x": DATA}, output=DATA, code="TIMEOUT", message=DATA, cause=DATA
        )
        Execution.objects.update(
            state="failed", finished_at=now, inputs={"x": DATA}, outputs=DATA, variables={"x": DATA},
            code="TIMEOUT", message=DATA,
        )  # fmt: skip
        ExecutionEvent.objects.create(
            execution_id=execution_id, sequence=2, at=now, kind="step.progress", step="fetch",
            data={"attempt": 1, "message": DATA},
        )  # fmt: skip
        for number, step in enumerate(("fetch", "ship"), start=1):
            StepLog.objects.create(
                execution_id=execution_id, number=number, at=now, step=step, attempt=1, level="info",
                message=f"{DATA}\x1b[2J",
            )  # fmt: skip
    return run


def test_without_a_key_states_and_codes_are_shown_and_no_data(isolane: Isolane, run: str) -> None:
    for command in ("show", "events"):
        shown = isolane("executions", command, run, "--tenant", "acme")
        assert DATA not in shown.output
        assert shown.stderr.count("\n") == 1
        assert "--api-key or ISOLANE_API_KEY" in shown.stderr
    body = json.loads(isolane("executions", "show", run, "--tenant", "acme").stdout)
    assert (body["state"], body["code"], body["steps"][0]["code"]) == (
        "failed",
        "TIMEOUT",
        "TIMEOUT",
    )
    assert body["finished_at"]
    assert body["usage"] == {"cpu_seconds": 0.0, "peak_ram_mb": 0.0}
    assert not {"inputs", "outputs", "variables", "message"} & set(body)
    assert not {"inputs", "output", "message", "cause"} & set(body["steps"][0])
    with pytest.raises(Forbidden, match="ISOLANE_API_KEY"):
        isolane("executions", "logs", run, "--tenant", "acme")


@pytest.mark.parametrize(
    ("state", "code", "shown"),
    [("queued", "", True), ("running", "TIMEOUT", False), ("running", "", False)],
)
def test_a_message_is_shown_while_it_is_the_platforms_own(
    isolane: Isolane,
    run: str,
    acme: TenantRef,
    superuser: Server,
    state: str,
    code: str,
    shown: bool,
) -> None:
    with unguarded(superuser, acme.schema), tenant_scope(acme):
        Execution.objects.update(state=state, finished_at=None, code=code, outputs=None)
    body = json.loads(isolane("executions", "show", run, "--tenant", "acme").stdout)
    assert ("message" in body) is shown


def test_costs_are_printed(isolane: Isolane, run: str, acme: TenantRef, globex: TenantRef) -> None:
    spent = (("fetch", 1, "tokens", "3.5"), ("fetch", 2, "tokens", "4"), ("ship", 1, "eur", "0.10"))
    with tenant_scope(acme):
        for step, attempt, kind, amount in spent:
            CostRecord.objects.create(
                execution_id=parse_id(run), step=step, attempt=attempt, kind=kind, amount=amount, at=timezone.now(),
            )  # fmt: skip
    costs = ("executions", "costs", run, "--tenant", "acme")
    printed = isolane(*costs).stdout.splitlines()
    assert printed[-2:] == ["eur: 0.1", "tokens: 7.5"]
    assert [row.split()[1:8:2] for row in printed if "fetch" in row] == [
        ["fetch", "1", "tokens", "3.5"],
        ["fetch", "2", "tokens", "4"],
    ]
    records = [json.loads(line) for line in isolane(*costs, "--json").stdout.splitlines()]
    assert [(record["step"], record["amount"]) for record in records] == [
        ("fetch", "3.5"),
        ("fetch", "4"),
        ("ship", "0.1"),
    ]


def test_with_a_key_all_is_shown(
    isolane: Isolane, run: str, acme: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOLANE_API_KEY", key_of(acme, "order", role=Role.VIEWER))
    shown = isolane("executions", "show", run, "--tenant", "acme")
    body: dict[str, Any] = json.loads(shown.stdout)
    assert shown.stderr == ""
    assert (body["outputs"], body["steps"][0]["output"]) == (DATA, DATA)
    events = isolane("executions", "events", run, "--tenant", "acme").stdout.splitlines()
    assert [json.loads(line)["sequence"] for line in events] == [1, 2]
    assert json.loads(events[1])["data"] == {"attempt": 1, "message": DATA}
    behind = isolane("executions", "events", run, "--tenant", "acme", "--after", "1").stdout
    assert behind.splitlines() == events[1:]


def test_logs_are_printed_and_cannot_steer_the_terminal(
    isolane: Isolane, run: str, acme: TenantRef
) -> None:
    logs = ("executions", "logs", run, "--tenant", "acme", "--api-key", key_of(acme))
    lines = isolane(*logs).stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        rf"fetch#1 info {DATA}\u001b[2J",
        rf"ship#1 info {DATA}\u001b[2J",
    ]
    assert isolane(*logs, "--step", "ship").stdout.splitlines() == lines[1:]
    assert isolane(*logs, "--follow").stdout.splitlines() == lines


def test_logs_are_followed_until_the_run_has_ended(
    isolane: Isolane, run: str, acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_on(_: float) -> None:
        StepLog.objects.create(
            execution_id=parse_id(run), number=3, at=timezone.now(), step="ship", attempt=1,
            level="info", message="the last",
        )  # fmt: skip
        Execution.objects.update(state="failed", finished_at=timezone.now())

    def sleep(seconds: float) -> None:
        with tenant_scope(acme):
            go_on(seconds)

    with unguarded(superuser, acme.schema), tenant_scope(acme):
        Execution.objects.update(state="running", finished_at=None)
    monkeypatch.setattr("orchestrator.cli.commands.executions.time.sleep", sleep)
    followed = isolane(
        "executions", "logs", run, "--tenant", "acme", "--follow", "--api-key", key_of(acme)
    )
    assert followed.stdout.splitlines()[-1].endswith("the last")
    assert len(followed.stdout.splitlines()) == 3


def test_a_key_of_another_tenant_or_of_nobody_is_refused(
    isolane: Isolane, run: str, globex: TenantRef
) -> None:
    show = ("executions", "show", run, "--tenant", "acme", "--api-key")
    with pytest.raises(Unauthenticated, match="not one of tenant 'acme'"):
        isolane(*show, key_of(globex))
    with pytest.raises(Unauthenticated, match="not valid"):
        isolane(*show, "isl_nonsense")


def test_a_key_for_other_blueprints_finds_nothing(
    isolane: Isolane, run: str, acme: TenantRef
) -> None:
    limited = ("--tenant", "acme", "--api-key", key_of(acme, "payroll"))
    for command in ("show", "events", "logs", "costs", "cancel", "replay"):
        with pytest.raises(NotFound, match=f"There is no execution {run}"):
            isolane("executions", command, run, *limited)
    assert run not in isolane("executions", "list", *limited).output
    with pytest.raises(Forbidden, match="lacks execution:run on blueprint 'order'"):
        isolane("executions", "submit", "order", "--input", "order_id=1", *limited)


def test_a_key_acts_with_its_own_rights(isolane: Isolane, run: str, acme: TenantRef) -> None:
    viewer = ("--tenant", "acme", "--api-key", key_of(acme, role=Role.VIEWER))
    for command in ("cancel", "replay"):
        with pytest.raises(Forbidden, match="lacks execution"):
            isolane("executions", command, run, *viewer)
    operator = ("--tenant", "acme", "--api-key", key_of(acme))
    submitted = isolane("executions", "submit", "order", "--input", "order_id=1", *operator)
    with tenant_scope(acme):
        made = Execution.objects.get(pk=parse_id(submitted.stdout.strip()))
    assert made.requested_by.startswith("key:isl_")


@pytest.mark.parametrize("command", ["show", "events", "logs", "costs", "cancel", "replay"])
def test_another_tenants_run_is_not_found(
    isolane: Isolane, run: str, globex: TenantRef, command: str
) -> None:
    with pytest.raises(NotFound, match="There is no execution"):
        isolane("executions", command, run, "--tenant", "globex")
    with pytest.raises(InvalidInput, match="is not an execution id"):
        isolane("executions", command, "exec_1", "--tenant", "globex")


def test_a_run_is_replayed(isolane: Isolane, acme: TenantRef, globex: TenantRef, run: str) -> None:
    with tenant_scope(acme):
        Execution.objects.update(inputs={"order_id": 7})
    again = isolane("executions", "replay", run, "--tenant", "acme").stdout.strip()
    with tenant_scope(acme):
        original, replayed = (Execution.objects.get(pk=parse_id(found)) for found in (run, again))
        assert replayed.replay_of == original.pk
        assert (replayed.seed, replayed.inputs) == (original.seed, original.inputs)
    with tenant_scope(globex):
        assert Execution.objects.count() == 1


def test_a_key_replays_once(isolane: Isolane, acme: TenantRef, globex: TenantRef, run: str) -> None:
    with tenant_scope(acme):
        Execution.objects.update(inputs={"order_id": 7})
    replay = ("executions", "replay", run, "--tenant", "acme", "--idempotency-key", "once")
    first, again = isolane(*replay), isolane(*replay)
    assert first.stdout == again.stdout
    assert "was used before" in again.stderr
    with tenant_scope(globex):
        assert Execution.objects.count() == 1


def test_a_key_submits_once(isolane: Isolane, acme: TenantRef, globex: TenantRef, run: str) -> None:
    submit = ("executions", "submit", "order", "--input", "order_id=9", "--idempotency-key", "nine")
    first, again = (isolane(*submit, "--tenant", "acme") for _ in range(2))
    assert first.stdout == again.stdout
    assert "was used before" in again.stderr
    assert isolane(*submit, "--tenant", "globex").stdout != first.stdout


def test_runs_are_listed_by_state_blueprint_and_label(isolane: Isolane, run: str) -> None:
    listed = ("executions", "list", "--tenant", "acme")
    for narrowed in (("--state", "failed"), ("--blueprint", "order")):
        assert run in isolane(*listed, *narrowed).output
    for narrowed in (("--state", "queued"), ("--blueprint", "no"), ("--label", "team:x")):
        assert run not in isolane(*listed, *narrowed).output
    with pytest.raises(InvalidInput, match="write key:value"):
        isolane(*listed, "--label", "team")
