"""Failure modes, waiting, cancelling, logs and secrets of runs on real workers.

One tenant is trusted, and its runs have the level `shared`; the other is not, and its runs have `process`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from executions.models import Execution, ExecutionEvent, StepLog
from executions.placement.models import Due, Ticket
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import answer
from executions.states import TicketState
from executions.submission.cancel import request_cancel
from foundation.errors import NotFound
from foundation.process_states import ENDED
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import (
    ended,
    no_slot_is_held,
    reload,
    start_run,
    step_runs,
    step_states,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("both_levels")
PASSWORD = "correct-horse-battery"
TOKEN = PASSWORD[::-1]


@pytest.fixture(autouse=True)
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of these tests offer nodes of their own, too."""
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.nodes tests.acceptance.nodes")


def events(tenant: TenantRef, run: Execution) -> list[str]:
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution=run).order_by("sequence")
        return list(found.values_list("kind", flat=True))


def lines(tenant: TenantRef, run: Execution) -> list[str]:
    with tenant_scope(tenant):
        found = StepLog.objects.filter(execution=run).order_by("number")
        return list(found.values_list("message", flat=True))


def output(tenant: TenantRef, run: Execution, path: str) -> Any:
    with tenant_scope(tenant):
        return run.steps.get(path=path).output


@pytest.mark.timeout(120)
def test_all_failure_modes_in_one_run_chained_and_express(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    steps: list[dict[str, Any]] = [
        {"uses": "trial.flaky", "with": {"until": 2}, "on_failure": "retry"},
        {"uses": "trial.fail", "with": {"code": "DISK_FULL"}, "on_failure": "continue"},
        {
            "uses": "trial.fail",
            "with": {"code": "TRANSIENT_ERROR"},
            "on_failure": "retry",
            "retry": {"attempts": 1, "then": "recover"},
            "recover": {"uses": "trial.rescue", "with": {"why": "${error.code}"}},
        },
        {"uses": "test.identity", "when": "${steps.s2}"},
        {"uses": "data.set", "with": {"values": {"n": "${steps.s1.attempt}"}}},
    ]
    outputs = {"attempts": "${vars.n}", "instead": "${steps.s3.instead}", "none": "${steps.s2}"}
    chained = start_run(acme, *steps, outputs=outputs)
    express = start_run(globex, *steps, outputs=outputs, express=True)
    for tenant, run in ((acme, chained), (globex, express)):
        found = ended(tenant, run, seconds=40)
        assert (found.state, found.code) == ("succeeded", "")
        assert found.outputs == {"attempts": 2, "instead": "TRANSIENT_ERROR", "none": None}
        assert step_states(tenant, run) == [
            ("s1", "succeeded", 2),
            ("s2", "failed", 1),
            ("s3", "succeeded", 2),
            ("s4", "skipped", 1),
            ("s5", "succeeded", 1),
        ]
    assert events(acme, chained) == events(globex, express)
    no_slot_is_held()


def test_a_step_killed_by_its_timeout_is_tried_again_in_a_new_runtime(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    step = {"uses": "trial.hang_once", "timeout": "500ms", "on_failure": "retry"}
    identity = {"uses": "test.identity"}
    runs = {tenant: start_run(tenant, identity, step, identity) for tenant in (acme, globex)}
    for tenant, run in runs.items():
        assert ended(tenant, run).state == "succeeded"
        assert step_states(tenant, run)[1] == ("s2", "succeeded", 2)
        assert "context.restarted" in events(tenant, run)
        assert [output(tenant, run, path)["epoch"] for path in ("s1", "s3")] == [1, 2]
    # In each sandbox the runner has the same number.
    first, second, third = (output(acme, runs[acme], path) for path in ("s1", "s2", "s3"))
    assert first["pid"] != second == third["pid"]
    no_slot_is_held()


def test_a_sleeping_run_holds_no_slot_and_wakes(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    sleep = {"uses": "flow.sleep", "with": {"seconds": 2}}
    goes_on = start_run(acme, sleep, {"uses": "test.identity"})
    ends = start_run(globex, sleep)

    def both_parked() -> bool:
        with platform_scope():
            parked = Ticket.objects.filter(state=TicketState.PARKED, worker=None)
            return parked.count() == Due.objects.count() == 2

    wait_for(both_parked, "both runs to be parked")
    assert reload(acme, goes_on).state == reload(globex, ends).state == "waiting"
    for tenant, run in ((acme, goes_on), (globex, ends)):
        found = ended(tenant, run)
        assert found.state == "succeeded"
        assert found.finished_at is not None
        assert found.started_at is not None
        assert (found.finished_at - found.started_at).total_seconds() >= 2
    assert step_states(acme, goes_on) == [("s1", "succeeded", 1), ("s2", "succeeded", 1)]
    assert output(acme, goes_on, "s2")["epoch"] == 2
    no_slot_is_held()


def test_a_person_is_asked_without_a_slot_and_each_tenants_run_goes_on_with_its_own_answer(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    steps: list[dict[str, Any]] = [
        {"uses": "data.map", "with": {"values": {"total": 30}}},
        {"uses": "human.approval", "with": {"prompt": "Pay ${steps.s1.total}?"}},
        {"uses": "test.identity", "when": "${steps.s2.approved}"},
    ]
    outputs = {"paid": "${steps.s3 != `null`}", "by": "${steps.s2.by}"}
    runs = [(tenant, start_run(tenant, *steps, outputs=outputs)) for tenant in (acme, globex)]

    def all_ask() -> bool:
        return all(reload(tenant, run).state == "suspended" for tenant, run in runs)

    wait_for(all_ask, "both runs to ask")
    for tenant, run in runs:
        assert reload(tenant, run).question == "Pay 30?"
    with platform_scope():
        assert not Ticket.objects.filter(state=TicketState.PLACED).exists()
    with pytest.raises(NotFound):
        answer(globex, runs[0][1].public_id, 1, ApprovalReply(approved=True, by="user:mallory"))
    for (tenant, run), approved in zip(runs, (True, False), strict=True):
        answer(
            tenant, run.public_id, 1, ApprovalReply(approved=approved, by=f"user:{tenant.schema}")
        )
    for (tenant, run), approved in zip(runs, (True, False), strict=True):
        found = ended(tenant, run)
        assert found.state == "succeeded"
        assert found.outputs == {"paid": approved, "by": f"user:{tenant.schema}"}
    no_slot_is_held()


def test_a_cancel_kills_the_running_step_and_its_children(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker()
    pids = tmp_path / "pids"
    tmp_path.chmod(0o777)
    step = {
        "uses": "test.sleep",
        "with": {"seconds": 60, "pid_file": str(pids)},
        "on_failure": "retry",
        "timeout": "60s",
    }
    run = start_run(acme, step, {"uses": "test.identity"})
    other = start_run(globex, {"uses": "test.sleep", "with": {"seconds": 1}})
    wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), "the step's child")
    asked = time.monotonic()
    with tenant_scope(acme):
        request_cancel(run.pk, actor="test")
    found = ended(acme, run)
    took = time.monotonic() - asked
    assert (found.state, found.code) == ("cancelled", "CANCELLED")
    assert took < 6, took  # a second for the loop, one of grace for the step, and a busy machine
    for pid in map(int, pids.read_text().split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() in ENDED
    assert ended(globex, other).state == "succeeded"
    no_slot_is_held()


def test_what_a_step_says_is_seen_while_it_runs(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker()
    file = tmp_path / "go"
    tmp_path.chmod(0o755)
    run = start_run(acme, {"uses": "trial.speak_and_wait", "with": {"file": str(file)}})
    other = start_run(globex, {"uses": "test.identity"})
    wait_for(lambda: lines(acme, run), "the first line")
    step_runs(acme, run, "s1")
    assert lines(acme, run) == ["begun"]
    wait_for(lambda: "step.progress" in events(acme, run), "the progress")
    file.touch()
    assert ended(acme, run).state == ended(globex, other).state == "succeeded"
    assert lines(acme, run) == ["begun", "ended"]
    assert lines(globex, other) == []


@contextmanager
def monitored(broker: "redis.Redis") -> Iterator[list[str]]:
    """Every command that the broker gets meanwhile."""
    seen: list[str] = []
    listening = threading.Event()

    def listen() -> None:
        with broker.monitor() as monitor:  # type: ignore[no-untyped-call]  # theirs
            listening.set()
            for command in monitor.listen():
                seen.append(str(command["command"]))
                if "END OF TEST" in seen[-1]:
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert listening.wait(10)
    yield seen
    broker.echo("END OF TEST")
    thread.join(10)
    assert not thread.is_alive()


def test_a_sensitive_value_reaches_neither_the_broker_nor_the_workers_log(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, broker: "redis.Redis"
) -> None:
    worker = start_worker()
    steps: list[dict[str, Any]] = [
        {
            "uses": "trial.login",
            "with": {"password": "${inputs.password}"},
            "sensitive": ["token", "session"],
        },
        {
            "uses": "trial.use",
            "with": {"token": "${steps.s1.token}", "session": "${vars.session}"},
            "on_failure": "continue",
        },
        {"uses": "trial.explode", "with": {"token": "${steps.s1.token}"}, "on_failure": "continue"},
    ]
    inputs = {"properties": {"password": {"type": "string", "sensitive": True}}}
    with monitored(broker) as commands:
        runs = [
            (tenant, start_run(tenant, *steps, given={"password": PASSWORD}, inputs=inputs))
            for tenant in (acme, globex)
        ]
        for tenant, run in runs:
            assert ended(tenant, run).state == "succeeded"
    assert any(str(runs[0][1].pk) in command for command in commands)
    said = worker.log.read_text()
    assert "STEP_TRACE" in said
    for secret in (PASSWORD, TOKEN):
        assert secret not in said
        assert not any(secret in command for command in commands)
    for tenant, run in runs:
        assert lines(tenant, run) == ["*** gave ***"]
        with tenant_scope(tenant):
            assert run.steps.get(path="s2").message == "refused: *** ***"
