"""Checks of documents hold no connection, and no tenant's checks delay those of others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
import redis
from django.db import connection, transaction

from executions.blueprints import work
from executions.blueprints.schema.inputs import check_inputs
from executions.blueprints.work import WorkClock
from executions.models import Blueprint
from executions.selectors.blueprints import blueprint_version
from executions.services import approvals, publishing
from executions.services.publishing import diff, publish, source_of, validate_text
from executions.states import ExecutionState
from executions.submission import bounded_work
from executions.submission import submit as runs
from executions.submission.replay import replay
from executions.submission.submit import RunRequest, submit
from executions.submission.work_gate import WorkGate
from executions.worker.boot import WorkerBoot
from foundation.errors import TooMuchToCheck
from tenants.postgresql.base import DatabaseWrapper
from tenants.roles import Role
from tenants.scope import ScopeError, TenantRef, tenant_scope, without_connection
from tests.factories import document
from tests.integration.executions.api.questions import ask, asking_boot
from tests.integration.executions.threads import in_thread
from tests.integration.tenants.web import problem, program
from tests.waiting import wait_for

API = "/api/v1"
TEXT = "name: flow\nsteps:\n- key: a\n  uses: work\n"


@contextmanager
def small_pool(size: int) -> Iterator[None]:
    """Web's threads share so many connections."""
    connection.ensure_connection()
    pool = DatabaseWrapper._connection_pools["default"]
    connection.close()
    usual = pool.min_size, pool.max_size
    pool.resize(1, size)
    try:
        yield
    finally:
        pool.resize(*usual)


class Observer:
    """Stands where something is worked on, and notes whether a connection is held meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.held: list[bool] = []

    def over(self, module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **named: Any) -> Any:
            self.held.append(connection.connection is not None)
            return real(*given, **named)

        self._monkeypatch.setattr(module, name, watched)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Observer:
    return Observer(monkeypatch)


@pytest.fixture
def _flow(boot: WorkerBoot, acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            publish(document())


# --- what holds no connection
@pytest.mark.usefixtures("_flow")
def test_inputs_are_checked_without_a_connection(acme: TenantRef, watch: Observer) -> None:
    watch.over(runs, "check_inputs")
    run = submit(acme, RunRequest(blueprint="flow", inputs={}, requested_by="tests")).execution
    replay(acme, run.pk, requested_by="tests")
    assert watch.held == [False, False]


@pytest.mark.usefixtures("_flow")
def test_blueprints_are_worked_on_without_a_connection(acme: TenantRef, watch: Observer) -> None:
    for name in ("read", "check_document", "as_yaml", "unified_diff"):
        watch.over(publishing, name)
    with tenant_scope(acme):
        publish(validate_text(TEXT))
        source_of(blueprint_version("flow"))
        diff("flow", 1, 2)
    assert watch.held == [False] * 5


def test_answers_are_worked_on_without_a_connection(
    database: None, broker: "redis.Redis", acme: TenantRef, watch: Observer
) -> None:
    run = ask(acme, asking_boot())
    watch.over(approvals, "restore_run")
    answered = program(acme).post(
        f"{API}/executions/{run}/approvals/1/answer",
        {"approved": True},
        content_type="application/json",
    )
    assert (answered.status_code, watch.held) == (200, [False])


def test_a_block_without_a_connection_comes_back_to_its_scope(
    acme: TenantRef, globex: TenantRef
) -> None:
    with tenant_scope(acme):
        Blueprint.objects.create(name="ours")
        with without_connection():
            assert connection.connection is None
            with without_connection(), pytest.raises(RuntimeError, match="given back"):
                Blueprint.objects.count()
            with pytest.raises(RuntimeError, match="given back"):
                Blueprint.objects.count()
        assert Blueprint.objects.get().name == "ours"
    with tenant_scope(globex):
        assert not Blueprint.objects.exists()


def test_a_connection_is_not_given_back_inside_a_transaction(acme: TenantRef) -> None:
    with tenant_scope(acme), transaction.atomic():
        with pytest.raises(ScopeError), without_connection():
            pass
        assert not Blueprint.objects.exists()


def test_an_answer_is_sent_without_a_connection(acme: TenantRef) -> None:
    assert program(acme, role=Role.VIEWER).get(f"{API}/executions").status_code == 200
    assert connection.connection is None


# --- others' time
@pytest.mark.usefixtures("_flow")
def test_checks_of_one_tenant_neither_stop_another_nor_take_all_places(
    acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    begun: list[object] = []

    def slow(content: Any, inputs: Any) -> None:
        if inputs:
            work.check_work().look()  # it takes longer than a millisecond, so it needs a place
            begun.append(inputs)
            assert go_on.wait(30)
        check_inputs(content, inputs)

    monkeypatch.setattr(runs, "check_inputs", slow)
    monkeypatch.setattr(bounded_work, "GATE", WorkGate(wait_s=0.3))
    ours, theirs = program(acme), program(globex)
    body = {"blueprint": "flow", "inputs": {"slow": 1}}

    def attack() -> Any:
        return ours.post(f"{API}/executions", body, content_type="application/json")

    with small_pool(2):
        attacks = [in_thread(attack) for _ in range(4)]
        wait_for(lambda: begun, "a check to have begun")
        # Others' requests are answered, and their submissions checked.
        assert theirs.get(f"{API}/blueprints").status_code == 200
        fine = theirs.post(
            f"{API}/executions", {"blueprint": "flow"}, content_type="application/json"
        )
        assert fine.status_code == 202
        wait_for(lambda: sum(each.done() for each in attacks) == 3, "three to be refused")
        go_on.set()
        answers = sorted(
            (each.result(30) for each in attacks), key=lambda answer: answer.status_code
        )
    assert [answer.status_code for answer in answers] == [202, 429, 429, 429]
    problem(answers[-1], 429, "too_many_checks")
    assert answers[-1]["Retry-After"] == "1"


BOMB = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)}


def test_a_short_check_waits_for_no_place(
    boot: WorkerBoot, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_work, "GATE", WorkGate(places=0, wait_s=0))
    with tenant_scope(acme):
        publish(document())
    run = submit(acme, RunRequest(blueprint="flow", inputs={}, requested_by="tests")).execution
    assert run.state == ExecutionState.QUEUED


def test_inputs_that_take_too_much_work_are_refused_as_such(
    boot: WorkerBoot, acme: TenantRef, globex: TenantRef
) -> None:
    bomb = {"$defs": {**BOMB, "d40": {"type": "object"}}, "$ref": "#/$defs/d0"}
    with tenant_scope(acme):
        publish({**document(), "inputs": bomb})
    body = {"blueprint": "flow", "inputs": {"a": 1}}
    answer = program(acme).post(f"{API}/executions", body, content_type="application/json")
    assert problem(answer, 422, "too_much_work")["field"] == "inputs"


def test_wrong_prices_are_found_out_by_the_clock(
    boot: WorkerBoot, acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = {"$defs": {**BOMB, "d40": {"type": "object"}}, "$ref": "#/$defs/d0"}
    with tenant_scope(acme):
        publish({**document(), "inputs": bomb})
    seconds = count()
    monkeypatch.setattr(work, "CHECK_WORK", 10**12)
    slow = WorkClock(clock=lambda: float(next(seconds)), rest=lambda: None)
    monkeypatch.setattr(bounded_work, "_watch", lambda _: slow)
    with pytest.raises(TooMuchToCheck):
        submit(acme, RunRequest(blueprint="flow", inputs={"a": 1}, requested_by="tests"))
    assert next(seconds) == 2


def test_a_blueprint_that_takes_too_much_work_is_refused_with_its_path(
    acme: TenantRef, globex: TenantRef
) -> None:
    source = f"{TEXT}inputs: {{properties: {{x: {{pattern: '(?:a?b?){{999}}c'}}}}}}\n"
    answer = program(acme, role=Role.AUTHOR).post(
        f"{API}/blueprints/validate", {"source": source}, content_type="application/json"
    )
    body = problem(answer, 422, "too_much_work")
    assert body["field"] == "$.inputs.properties.x.pattern"
    assert body["errors"][0]["line"] == 5


def test_a_number_that_is_too_large_is_no_json(acme: TenantRef, globex: TenantRef) -> None:
    for body in ('{"blueprint": "flow", "inputs": {"x": 1e999}}', '{"seed": -1e999}'):
        answer = program(acme).post(f"{API}/executions", body, content_type="application/json")
        assert "1e999 is too large" in problem(answer, 400, "parse_error")["detail"]
