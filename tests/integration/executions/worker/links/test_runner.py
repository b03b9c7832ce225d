"""One link at a time with a stub for the runtime: claim, open, run, checkpoint, count out, close."""

import threading
from dataclasses import replace

import pytest
import redis
from celery.canvas import Signature
from celery.exceptions import Ignore

from executions.placement.admission import admit
from executions.placement.chain import WINDOW
from executions.semantics.reasons import EndReason
from executions.semantics.seeds import derive_seed
from executions.services.publishing import publish
from executions.states import ExecutionState
from executions.submission.cancel import request_cancel
from executions.submission.submit import RunRequest, submit
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, NoClaim, StepFailed
from executions.worker.loops.lease import kill_runtimes
from foundation.errors import NotFound
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    backend_of,
    document,
    events_of,
    everything_of,
    held_by,
    make_boot,
    make_placed,
    make_run,
    place,
    run_of,
    set_quota,
    steps_of,
    ticket_of,
)
from tests.integration.executions.threads import in_thread
from tests.integration.executions.worker.driving import epochs_closed, run_link, runs_of

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    """A worker with nodes that behave in several ways."""
    script = {"work": succeeds({"n": 1}), "break": fails(Code.UNKNOWN_ERROR, "broke")}
    return make_boot(script=script)


def steps_run(boot: WorkerBoot, placement: Placement) -> list[str]:
    return [run.step for run in runs_of(boot, placement)]


# --- the ordinary way
def test_two_steps_run_in_one_context_and_the_end_frees_the_slot(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    context = boot.contexts.get(placement.key)
    assert context is not None
    assert (context.active, context.exit) == (0, None)
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    run_link(links, placement, "two")
    assert steps_run(boot, placement) == ["one", "two"]
    assert len(epochs_closed(boot, placement)) == 1
    assert boot.contexts.get(placement.key) is None
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    assert ticket_of(placement.execution_id) is None
    assert events_of(acme, placement.execution_id) == [
        "execution.queued",
        "placement.began",
        "step.started",
        "step.succeeded",
        "step.started",
        "step.succeeded",
        "execution.succeeded",
    ]


def test_the_same_message_twice_at_the_same_time_runs_its_step_once(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    """It has the same task id in two threads, of which each must find its own note."""
    placement = make_placed(acme, boot)
    both_have_begun = threading.Barrier(2)

    def deliver() -> str:
        links.begin("same id", placement, "one")
        both_have_begun.wait(20)
        try:
            links.run("same id", "one", [])
        except Ignore as ignored:
            return str(ignored)
        finally:
            links.end("same id")
        return "ran"

    deliveries = [in_thread(deliver) for _ in range(2)]
    assert sorted(each.result(timeout=20) for each in deliveries) == ["duplicate", "ran"]
    assert steps_run(boot, placement) == ["one"]
    # Both were counted out, so that nothing is taken for busy.
    assert boot.contexts.idle_seconds(placement.key) > 0
    run_link(links, placement, "two")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


def test_a_step_gets_its_parameters_seed_and_key(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    flow = document()
    flow["steps"][1]["with"] = {"seen": "${steps.one.n}", "given": "${inputs.word}"}
    with tenant_scope(acme):
        publish(flow)
    run = submit(
        acme, RunRequest(blueprint="flow", inputs={"word": "hi"}, requested_by="tests", seed=7)
    ).execution
    placement = place(acme, run.id, boot)
    run_link(links, placement, "one")
    run_link(links, placement, "two")
    _, frame = backend_of(boot).runs[-1]
    assert frame.parameters == {"seen": 1, "given": "hi"}
    assert (frame.attempt, frame.seed, frame.timeout_s) == (1, derive_seed(7, 1), 30.0)
    assert frame.idempotency_key == f"{run.id}:two"


def test_the_end_of_a_run_lets_the_next_one_in(
    acme: TenantRef,
    globex: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    broker: "redis.Redis",
) -> None:
    set_quota(acme, 1)
    first = make_placed(acme, boot, "only")
    waiting = make_run(acme, "only")
    assert admit() == []
    run_link(links, first, "only")
    assert waiting in held_by(boot)
    assert broker.llen(boot.lane) == 1


def test_the_last_link_of_a_window_is_followed_by_the_next_window(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    paths = [f"s{number}" for number in range(WINDOW + 2)]
    placement = make_placed(acme, boot, *paths)
    links.begin("s0", placement, "s0")
    rest = [Signature("rest of the window")]
    assert links.run("s0", "s0", rest) is rest
    links.end("s0")
    links.begin("s1", placement, "s1")
    following = links.run("s1", "s1", [])
    links.end("s1")
    # The next one last, as Celery keeps the rest of a chain.
    assert [link.args[-1] for link in following] == paths[2 : WINDOW + 2][::-1]
    assert {(link.options["queue"], link.args[2], link.immutable) for link in following} == {
        (boot.lane, placement.epoch, True)
    }


def test_a_resumed_run_skips_what_is_done_and_remembers_it(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    run_link(links, placement, "one")
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "one")  # a plain return: the chain goes on
    run_link(links, again, "two")
    assert steps_run(boot, placement) == ["one", "two"]
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


# --- what Celery may do
def test_a_body_without_a_note_raises(links: LinkRunner) -> None:
    with pytest.raises(NoClaim):
        links.run("never begun", "one", [])
    links.end("never begun")


def test_a_duplicate_is_ignored_and_not_counted_out(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    links.begin("first", placement, "one")
    links.begin("second", placement, "one")
    before = everything_of(acme)
    with pytest.raises(Ignore):
        links.run("second", "one", [])
    links.end("second")
    context = boot.contexts.get(placement.key)
    assert context is not None
    assert context.active == 1
    assert everything_of(acme) == before
    links.run("first", "one", [])
    links.end("first")
    assert steps_run(boot, placement) == ["one"]


def test_postruns_out_of_order_close_exactly_once(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    for path in ("one", "two"):
        links.begin(path, placement, path)
        links.run(path, path, [])
    links.end("two")
    assert len(epochs_closed(boot, placement)) == 0
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    links.end("one")
    assert len(epochs_closed(boot, placement)) == 1
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    links.end("one")
    assert events_of(acme, placement.execution_id).count("execution.succeeded") == 1


# --- failures
def test_a_failed_step_ends_the_run_with_a_code_and_no_text(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot, uses="break")
    with pytest.raises(StepFailed, match=r"\AUNKNOWN_ERROR\Z"):
        run_link(links, placement, "one")
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code, run.message) == ("failed", "UNKNOWN_ERROR", "broke")
    assert steps_of(acme, placement.execution_id) == {"one": "failed", "two": "skipped"}
    assert boot.contexts.get(placement.key) is None


def test_a_reference_that_cannot_be_evaluated_fails_the_step(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    flow = document("one")
    flow["steps"][0]["with"] = {"x": "${inputs.list[?@ > `1`]}"}
    with tenant_scope(acme):
        publish(flow)
    run = submit(
        acme, RunRequest(blueprint="flow", inputs={"list": ["a"]}, requested_by="tests")
    ).execution
    placement = place(acme, run.id, boot)
    with pytest.raises(StepFailed, match="POLICY_VIOLATION"):
        run_link(links, placement, "one")
    assert steps_run(boot, placement) == []
    assert run_of(acme, run.id).state == ExecutionState.FAILED


def test_a_context_that_cannot_be_opened_fails_step_and_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeStartError("no room")

    monkeypatch.setattr(backend_of(boot), "start", refuse)
    placement = make_placed(acme, boot)
    with pytest.raises(StepFailed, match="RESOURCE_ERROR"):
        run_link(links, placement, "one")
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == ("failed", "RESOURCE_ERROR")
    assert "no room" not in run.message  # for the operator only
    assert steps_of(acme, placement.execution_id) == {"one": "failed", "two": "skipped"}
    assert boot.contexts.get(placement.key) is None
    assert placement.execution_id not in held_by(boot)


def test_a_context_that_is_half_open_is_closed_like_any_other(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeStartError("half open")

    monkeypatch.setattr("resources.runtimes.stub.StubRuntime.open", refuse)
    placement = make_placed(acme, boot)
    with pytest.raises(StepFailed, match="RESOURCE_ERROR"):
        run_link(links, placement, "one")
    assert len(epochs_closed(boot, placement)) == 1
    assert run_of(acme, placement.execution_id).state == ExecutionState.FAILED


# --- placements that are over, or must not begin
def test_an_old_lease_refuses_every_link(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    before = everything_of(acme)
    boot.renewed_at -= boot.clocks.self_fence
    with pytest.raises(Ignore, match="stale"):
        run_link(links, placement, "one")
    assert everything_of(acme) == before


def test_a_draining_worker_begins_no_step(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    before = everything_of(acme)
    boot.draining.set()
    with pytest.raises(Ignore):
        run_link(links, placement, "one")
    assert everything_of(acme) == before


def test_a_step_that_ends_after_its_placement_writes_nothing(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    links.begin("one", placement, "one")
    with tenant_scope(acme):
        hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    before = everything_of(acme)
    with pytest.raises(Ignore, match="fence"):
        links.run("one", "one", [])
    links.end("one")
    assert everything_of(acme) == before
    assert len(epochs_closed(boot, placement)) == 1
    assert boot.contexts.get(placement.key) is None


def test_a_step_whose_runtime_was_killed_is_lost_not_failed(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot, uses="break")
    links.begin("one", placement, "one")
    before = everything_of(acme)
    kill_runtimes(boot)
    with pytest.raises(Ignore):
        links.run("one", "one", [])
    links.end("one")
    assert everything_of(acme) == before
    assert boot.contexts.get(placement.key) is None


def test_a_cancelled_step_ends_the_run_cancelled(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = make_placed(acme, boot)
    links.begin("one", placement, "one")
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    context = boot.contexts.get(placement.key)
    assert context is not None
    context.cancelled.set()
    backend_of(boot).script = {
        "work": lambda run, cancelled, _: _obey(run.step, cancelled.is_set())
    }
    with pytest.raises(StepFailed, match="CANCELLED"):
        links.run("one", "one", [])
    links.end("one")
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert steps_of(acme, placement.execution_id) == {"one": "cancelled", "two": "cancelled"}


def _obey(step: str, cancelled: bool) -> StepResult:
    assert cancelled
    return StepResult.failed(step=step, attempt=1, code=Code.CANCELLED, message="")


# --- what Celery would swallow
def test_a_link_without_a_valid_tenant_fails_and_touches_nothing(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    before = everything_of(acme)
    nobody = replace(make_placed(acme, boot), tenant_id=999_999)
    after_placing = everything_of(acme)
    with pytest.raises(NotFound):
        links.begin("link", nobody, "one")
    with pytest.raises(NoClaim):
        links.run("link", "one", [])
    links.end("link")
    assert everything_of(acme) == after_placing != before
    assert boot.contexts.idle_seconds(nobody.key) >= 0


def test_a_fault_of_the_worker_fails_the_step_instead_of_looping(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = make_placed(acme, boot)
    monkeypatch.setattr("executions.semantics.attempt.resolve", lambda *_: 1 // 0)
    links.begin("link", placement, "one")
    with pytest.raises(StepFailed, match="UNKNOWN_ERROR"):
        links.run("link", "one", [])
    links.end("link")
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == (ExecutionState.FAILED, Code.UNKNOWN_ERROR)
    assert ticket_of(placement.execution_id) is None
