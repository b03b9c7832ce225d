"""The events of every transition, whole: their numbers, kinds, steps and data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import transaction
from django.db.models import F

from executions.models import Approval, ApprovalState, Execution, ExecutionEvent
from executions.semantics.attempt_record import LogLine
from executions.semantics.decisions import StepDecision
from executions.semantics.reasons import EndReason, QueueReason
from executions.states import ExecutionState, StepState
from executions.transitions.answer import ApprovalAnswer, write_answer
from executions.transitions.append_connections import append_connections
from executions.transitions.append_output import append_output
from executions.transitions.cancel import cancel
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.close import close_execution
from executions.transitions.end_waiting import end_waiting
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.refusal import note_refusal
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.transitions.wake import wake
from executions.worker.boot import WorkerBoot
from isolane.results import Code
from resources.gate.connection_log import NumberedRecord
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.connections import a_refusal
from tests.factories import due_of, events_of, make_placed, make_run, place
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.threads import in_thread
from tests.integration.executions.transitions.conftest import WORKER
from tests.integration.executions.transitions.runs import (
    ask,
    attempt,
    end_step,
    make_due,
    park,
    pause,
    retry,
)

Told = tuple[int, str, str, dict[str, Any]]
Untold = tuple[str, str, dict[str, Any]]  # its number is still to come
OTHER = "w2@test"
QUEUED: Told = (1, "execution.queued", "", {})
BEGAN = (2, "placement.began", "", {"epoch": 1, "worker": WORKER})
STARTED = (3, "step.started", "one", {"attempt": 1, "epoch": 1, "worker": WORKER})
LOST = PlacementEnd(reason=EndReason.WORKER_LOST, lost=True, by=OTHER)
DRAINED = PlacementEnd(reason=EndReason.WORKER_DRAINING)
WHY_LOST = {"epoch": 1, "reason": EndReason.WORKER_LOST, "worker": WORKER, "by": OTHER}
WHY_DRAINED = {"epoch": 1, "reason": EndReason.WORKER_DRAINING, "worker": WORKER}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LINES = [LogLine(at=NOON + timedelta(seconds=n), level="info", message=f"{n}") for n in range(3)]
ONWARD = StepDecision(state=StepState.SUCCEEDED, next_step="two")

pytestmark = pytest.mark.usefixtures("neighbour")


def told(tenant: TenantRef, run: Placement | UUID, after: int = 3) -> list[Told]:
    """The run's events after the first few, numbered without a gap; the time a step took is taken out."""
    execution_id = run.execution_id if isinstance(run, Placement) else run
    events_of(tenant, execution_id)
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution_id=execution_id, sequence__gt=after)
        rows = list(found.order_by("sequence").values_list("sequence", "kind", "step", "data"))
    for _, _, _, data in rows:
        assert data.pop("ms", 0) >= 0
    return rows


# --- submit, claim
def test_submit(acme: TenantRef, boot: WorkerBoot) -> None:
    assert told(acme, make_run(acme), after=0) == [QUEUED]


def test_the_first_claim_of_a_placement(acme: TenantRef, claimed: Placement) -> None:
    assert told(acme, claimed, after=0) == [QUEUED, BEGAN, STARTED]


def test_a_further_claim_of_a_placement(acme: TenantRef, claimed: Placement) -> None:
    end_step(acme, claimed, ONWARD)
    with tenant_scope(acme):
        claim_step(claimed, "two", worker=WORKER)
    started = {"attempt": 1, "epoch": 1, "worker": WORKER}
    assert told(acme, claimed, after=4) == [(5, "step.started", "two", started)]


# --- checkpoint
@pytest.mark.parametrize(
    ("decided", "fields", "data"),
    [
        (ONWARD, {}, {}),
        (ONWARD, {"lines": LINES}, {"last_log": 3}),
        (ONWARD, {"unbilled": True}, {"unbilled": True}),
        (
            StepDecision(state=StepState.FAILED, next_step="", outcome=ExecutionState.FAILED),
            {"code": "UNKNOWN_ERROR", "message": "broke", "run_code": "UNKNOWN_ERROR"},
            {"code": "UNKNOWN_ERROR"},
        ),
        (
            StepDecision(state=StepState.RETRYING, next_step="one", retry_s=5.5),
            {"code": "TRANSIENT_ERROR"},
            {"code": "TRANSIENT_ERROR", "retry_s": 5.5},
        ),
        (
            StepDecision(state=StepState.RETRYING, next_step="one", retry_s=90.0),
            {"code": "TRANSIENT_ERROR"},
            {"code": "TRANSIENT_ERROR", "retry_s": 90, "wake_s": 90},
        ),
        (
            StepDecision(state=StepState.RETRYING, next_step="one", retry_s=0.0, recovering=True),
            {"code": "UNKNOWN_ERROR"},
            {"code": "UNKNOWN_ERROR", "retry_s": 0, "recovering": True},
        ),
        (
            StepDecision(state=StepState.SUSPENDED, next_step="one", pause_s=60.0),
            {"question": "Pay?"},
            {"wake_s": 60},
        ),
        (StepDecision(state=StepState.SKIPPED, next_step="two"), {}, {}),
    ],
)
def test_a_checkpoint(
    acme: TenantRef,
    claimed: Placement,
    decided: StepDecision,
    fields: dict[str, Any],
    data: dict[str, Any],
) -> None:
    end_step(acme, claimed, decided, **fields)
    kind = f"step.{decided.state.value}"
    assert told(acme, claimed) == [(4, kind, "one", {"attempt": 1, **data})]


def test_a_checkpoint_names_the_last_line_of_the_run(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        append_output(claimed, "one", 1, lines=LINES[:1], fraction=None, text="")
    end_step(acme, claimed, ONWARD, lines=LINES[1:])
    assert told(acme, claimed, after=4) == [
        (5, "step.succeeded", "one", {"attempt": 1, "last_log": 3})
    ]


def test_a_checkpoint_that_claims_the_next_step(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        written = write_checkpoint(claimed, attempt(), ONWARD, claim_next_for=WORKER)
    assert written is not None
    assert written.claim is not None
    assert told(acme, claimed) == [
        (4, "step.succeeded", "one", {"attempt": 1}),
        (5, "step.started", "two", {"attempt": 1, "epoch": 1, "worker": WORKER}),
    ]


def test_a_checkpoint_that_claims_its_own_step_again(acme: TenantRef, claimed: Placement) -> None:
    """A statement cannot change one row twice: the retry is claimed by itself."""
    decided = StepDecision(state=StepState.RETRYING, next_step="one", retry_s=5.0)
    with tenant_scope(acme):
        written = write_checkpoint(claimed, attempt(), decided, claim_next_for=WORKER)
    assert written is not None
    assert written.claim is None
    assert told(acme, claimed) == [(4, "step.retrying", "one", {"attempt": 1, "retry_s": 5})]


def test_a_checkpoint_that_could_not_claim_the_next_step(
    acme: TenantRef, claimed: Placement
) -> None:
    with tenant_scope(acme):
        cancel(claimed.execution_id, message="")
        written = write_checkpoint(claimed, attempt(), ONWARD, claim_next_for=WORKER)
    assert written is not None
    assert written.claim is None
    assert told(acme, claimed, after=4) == [(5, "step.succeeded", "one", {"attempt": 1})]


# --- output
@pytest.mark.parametrize("lines", [0, 2])
@pytest.mark.parametrize("fraction", [None, 0.5])
def test_output(acme: TenantRef, claimed: Placement, lines: int, fraction: float | None) -> None:
    with tenant_scope(acme):
        assert append_output(claimed, "one", 1, lines=LINES[:lines], fraction=fraction, text="half")
    progress = {"attempt": 1, "fraction": 0.5, "message": "half"}
    log = {"attempt": 1, "lines": 2, "last_log": 2}
    expected: list[Untold] = [("step.progress", "one", progress)] if fraction else []
    expected += [("step.log", "one", log)] if lines else []
    assert told(acme, claimed) == [(n, *each) for n, each in enumerate(expected, start=4)]


# --- outcome, close
@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(ExecutionState.CANCELLED, "step.cancelled"), (ExecutionState.TIMED_OUT, "step.failed")],
)
def test_an_outcome_ends_the_running_step(
    acme: TenantRef, claimed: Placement, outcome: ExecutionState, kind: str
) -> None:
    with tenant_scope(acme):
        assert set_outcome(claimed, outcome, code="TIMEOUT", message="late")
    data = {"attempt": 1, "code": "TIMEOUT", "unbilled": True}
    assert told(acme, claimed) == [(4, kind, "one", data)]


@pytest.mark.parametrize("ends", [retry, ask])
def test_an_outcome_ends_a_step_that_waits(
    acme: TenantRef, claimed: Placement, ends: Callable[[TenantRef, Placement], None]
) -> None:
    ends(acme, claimed)
    with tenant_scope(acme):
        assert set_outcome(claimed, ExecutionState.FAILED, code="", message="")
    assert told(acme, claimed, after=4) == [(5, "step.failed", "one", {"attempt": 1})]


def test_an_outcome_without_a_step_at_work(acme: TenantRef, placed: Placement) -> None:
    with tenant_scope(acme):
        assert set_outcome(placed, ExecutionState.FAILED, code="", message="")
    assert told(acme, placed, after=1) == []


def test_several_steps_that_end_are_told_of_in_order(
    acme: TenantRef, boot: WorkerBoot, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """No blueprint comes to this; the numbers would still be right."""
    placement = make_placed(acme, boot, "c", "a", "b")
    for state in ("running", "retrying"):
        superuser.execute(f"UPDATE acme.executions_step SET state = '{state}' WHERE path <> 'b'")
    with tenant_scope(acme):
        assert set_outcome(placement, ExecutionState.FAILED, code="", message="")
    assert [(n, step) for n, _, step, _ in told(acme, placement, after=1)] == [(2, "a"), (3, "c")]


@pytest.mark.parametrize("outcome", [ExecutionState.FAILED, ExecutionState.CANCELLED])
@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_close(
    acme: TenantRef, placed: Placement, outcome: ExecutionState, lost: bool, is_claimed: bool
) -> None:
    with tenant_scope(acme):
        if is_claimed:
            claim_step(placed, "one", worker=WORKER)
        set_outcome(placed, outcome, code="", message="")
        ended = close_execution(placed, ending=LOST) if lost else close_execution(placed)
    assert ended == outcome
    expected: list[Untold] = []
    if not is_claimed:
        expected.append(("placement.began", "", {"epoch": 1, "worker": WORKER}))
    if lost:
        expected.append(("placement.lost", "", WHY_LOST))
    expected.append((f"execution.{outcome.value}", "", {"epoch": 1}))
    first = 5 if is_claimed else 2
    assert told(acme, placed, after=first - 1) == [
        (n, *each) for n, each in enumerate(expected, start=first)
    ]


def test_a_close_of_a_worker_without_a_name(acme: TenantRef, placed: Placement) -> None:
    with tenant_scope(acme):
        set_outcome(placed, ExecutionState.FAILED, code="", message="")
        close_execution(replace(placed, worker=""))
    assert told(acme, placed, after=1) == [
        (2, "placement.began", "", {"epoch": 1}),
        (3, "execution.failed", "", {"epoch": 1}),
    ]


def test_a_close_of_a_run_that_succeeded(acme: TenantRef, claimed: Placement) -> None:
    over = StepDecision(state=StepState.SUCCEEDED, next_step="", outcome=ExecutionState.SUCCEEDED)
    end_step(acme, claimed, over)
    with tenant_scope(acme):
        assert close_execution(claimed) == ExecutionState.SUCCEEDED
    assert told(acme, claimed, after=4) == [(5, "execution.succeeded", "", {"epoch": 1})]


# --- hand back
@pytest.mark.parametrize(
    ("ending", "kind", "why"),
    [
        (LOST, "placement.lost", WHY_LOST),
        (DRAINED, "placement.handed_over", WHY_DRAINED),
    ],
)
@pytest.mark.parametrize("at", ["unclaimed", "running", "retrying", "between"])
def test_a_run_goes_back_to_the_queue(
    acme: TenantRef, placed: Placement, ending: PlacementEnd, kind: str, why: Any, at: str
) -> None:
    if at != "unclaimed":
        with tenant_scope(acme):
            claim_step(placed, "one", worker=WORKER)
    if at == "retrying":
        retry(acme, placed)
    if at == "between":
        end_step(acme, placed, ONWARD)
    before = len(told(acme, placed, after=0))
    with tenant_scope(acme):
        assert hand_back(placed, ending) == ExecutionState.QUEUED
    expected: list[Untold] = []
    if at == "unclaimed":
        expected.append(("placement.began", "", {"epoch": 1, "worker": WORKER}))
    step = "one" if at in {"running", "retrying"} else ""
    expected.append((kind, step, why | ({"unbilled": True} if at == "running" else {})))
    assert told(acme, placed, after=before) == [
        (n, *each) for n, each in enumerate(expected, start=before + 1)
    ]


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize(
    ("parks", "kind", "step"),
    [
        (ask, "execution.suspended", "one"),
        (pause, "execution.waiting", ""),
        (partial(retry, seconds=90.0), "execution.waiting", "one"),
    ],
)
def test_a_run_that_waits_without_a_slot(
    acme: TenantRef, claimed: Placement, lost: bool, parks: Any, kind: str, step: str
) -> None:
    parks(acme, claimed)
    with tenant_scope(acme):
        assert hand_back(claimed, LOST if lost else DRAINED)
    due = due_of(claimed.execution_id)
    assert due is not None
    *before, (number, last, of, data) = told(acme, claimed, after=4)
    assert before == ([(5, "placement.lost", "", WHY_LOST)] if lost else [])
    assert (number, last, of) == (6 if lost else 5, kind, step)
    assert datetime.fromisoformat(data.pop("until")) == due.at
    assert data == (WHY_LOST if lost else WHY_DRAINED)


# --- restart, refusal
@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_restart(acme: TenantRef, placed: Placement, is_claimed: bool) -> None:
    with tenant_scope(acme):
        if is_claimed:
            claim_step(placed, "one", worker=WORKER)
        assert restart(placed, reason=EndReason.RUNTIME_ENDED) == 2
    number = 4 if is_claimed else 2
    data = {"epoch": 2, "reason": EndReason.RUNTIME_ENDED}
    assert told(acme, placed, after=number - 1) == [(number, "context.restarted", "", data)]


def test_a_refusal(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        hand_back(claimed, LOST)
        assert note_refusal(claimed, "checkpoint", "one")
    data = {"epoch": 1, "worker": WORKER, "what": "checkpoint"}
    assert told(acme, claimed, after=4) == [(5, "fence.refused", "one", data)]


# --- without a slot
@pytest.mark.parametrize("actor", ["ann", ""])
def test_a_cancel_of_a_placed_run(acme: TenantRef, claimed: Placement, actor: str) -> None:
    with tenant_scope(acme):
        for _ in range(2):
            cancel(claimed.execution_id, message="Cancelled.", actor=actor)
    data = {"message": "Cancelled."} | ({"actor": "ann"} if actor else {})
    assert told(acme, claimed) == [(4, "execution.cancel_requested", "", data)]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(ExecutionState.CANCELLED, "step.cancelled"), (ExecutionState.FAILED, "step.failed")],
)
@pytest.mark.parametrize("parks", [ask, partial(retry, seconds=90.0)])
def test_the_end_of_a_run_that_waits(
    acme: TenantRef, claimed: Placement, outcome: ExecutionState, kind: str, parks: Any
) -> None:
    parks(acme, claimed)
    park(acme, claimed)
    with tenant_scope(acme):
        if parks is not ask:  # it has become pending again, and never began
            assert end_waiting(claimed.execution_id, outcome, code="C", message="")
            assert told(acme, claimed, after=5) == [
                (6, f"execution.{outcome.value}", "", {"code": "C"})
            ]
            return
        assert end_waiting(claimed.execution_id, outcome, code="C", message="")
    assert told(acme, claimed, after=5) == [
        (6, kind, "one", {"attempt": 1, "code": "C"}),
        (7, f"execution.{outcome.value}", "", {"code": "C"}),
    ]


def test_the_end_of_a_run_that_never_began(acme: TenantRef, boot: WorkerBoot) -> None:
    run_id = make_run(acme)
    with tenant_scope(acme):
        assert end_waiting(run_id, ExecutionState.FAILED, code=Code.CATALOGUE_MISSING, message="")
    data = {"code": Code.CATALOGUE_MISSING}
    assert told(acme, run_id, after=1) == [(2, "execution.failed", "", data)]


@pytest.mark.parametrize(("next_step", "state"), [("two", "queued"), ("", "succeeded")])
def test_a_wake_up(acme: TenantRef, claimed: Placement, next_step: str, state: str) -> None:
    pause(acme, claimed, next_step)
    park(acme, claimed)
    make_due(claimed)
    with tenant_scope(acme):
        assert wake(claimed.execution_id) == state
    data = {"reason": QueueReason.WAKE_TIME}
    assert told(acme, claimed, after=5) == [(6, f"execution.{state}", "", data)]


@pytest.mark.parametrize(
    ("decided", "fields", "data", "run_state"),
    [
        (ONWARD, {}, {}, "queued"),
        (
            StepDecision(state=StepState.SUCCEEDED, next_step="", outcome=ExecutionState.SUCCEEDED),
            {},
            {},
            "succeeded",
        ),
        (
            StepDecision(state=StepState.RETRYING, next_step="one", retry_s=90.0),
            {"code": "TIMEOUT"},
            {"code": "TIMEOUT", "retry_s": 90, "wake_s": 90},
            "waiting",
        ),
        (
            StepDecision(state=StepState.RETRYING, next_step="one", retry_s=0.0, recovering=True),
            {"code": "TIMEOUT"},
            {"code": "TIMEOUT", "retry_s": 0, "recovering": True},
            "queued",
        ),
    ],
)
@pytest.mark.parametrize("by", ["user:ann", ""])
def test_an_answer(
    acme: TenantRef,
    claimed: Placement,
    decided: StepDecision,
    fields: dict[str, Any],
    data: dict[str, Any],
    run_state: str,
    by: str,
) -> None:
    ask(acme, claimed)
    park(acme, claimed)
    state = ApprovalState.APPROVED if by else ApprovalState.EXPIRED
    answer = ApprovalAnswer(execution_id=claimed.execution_id, number=1, state=state, by=by)
    with tenant_scope(acme):
        if not by:
            Approval.objects.update(expires_at=F("asked_at"))
        assert write_answer(answer, replace(attempt(**fields), version=1), decided) == run_state
    who = {"actor": by} if by else {}
    step = {"attempt": 1, "approval": 1, **who, **data}
    assert told(acme, claimed, after=5) == [
        (6, f"step.{decided.state.value}", "one", step),
        (7, f"execution.{run_state}", "", {"reason": state.value}),
    ]


# --- beside another writer
@contextmanager
def another_writes(tenant: TenantRef, placement: Placement) -> Iterator[None]:
    """Another statement has written the run's next event and is not committed before the block ends."""
    with tenant_scope(tenant), transaction.atomic():
        Execution.objects.filter(pk=placement.execution_id).update(
            last_event=F("last_event") + 1, last_log=F("last_log") + 1
        )
        run = Execution.objects.get(pk=placement.execution_id)
        ExecutionEvent.objects.create(
            execution=run, sequence=run.last_event, at=NOON, kind="other", data={}
        )
        yield


def _claim(placement: Placement) -> object:
    return claim_step(placement, "one", worker=WORKER)


def _checkpoint(placement: Placement) -> object:
    return write_checkpoint(placement, attempt(lines=LINES), ONWARD, claim_next_for=WORKER)


def _append(placement: Placement) -> object:
    return append_output(placement, "one", 1, lines=LINES, fraction=0.5, text="")


def _append_connections(placement: Placement) -> object:
    return append_connections(placement, [NumberedRecord(1, a_refusal())])


def _lose(placement: Placement) -> object:
    return hand_back(placement, LOST)


def _restart(placement: Placement) -> object:
    return restart(placement, reason=EndReason.RUNTIME_ENDED)


def _outcome(placement: Placement) -> object:
    return set_outcome(placement, ExecutionState.FAILED, code="", message="")


def _close(placement: Placement) -> object:
    return close_execution(placement, ending=LOST)


def _cancel(placement: Placement) -> object:
    return cancel(placement.execution_id, message="")


@pytest.mark.parametrize(
    ("write", "kinds"),
    [
        (_claim, ["placement.began", "step.started"]),
        (_checkpoint, ["step.succeeded", "step.started"]),
        (_append, ["step.progress", "step.log"]),
        (_append_connections, ["connection.refused"]),
        (_lose, ["placement.lost"]),
        (_restart, ["context.restarted"]),
        (_outcome, ["step.failed"]),
        (_close, ["placement.lost", "execution.failed"]),
        (_cancel, ["execution.cancel_requested"]),
    ],
)
def test_a_writer_that_waited_for_another_goes_on_counting_from_it(
    acme: TenantRef,
    placed: Placement,
    superuser: "psycopg.Connection[tuple[object, ...]]",
    write: Callable[[Placement], object],
    kinds: list[str],
) -> None:
    with tenant_scope(acme):
        if write is not _claim:
            claim_step(placed, "one", worker=WORKER)
        if write is _close:
            _outcome(placed)
    before = len(told(acme, placed, after=0))

    def beside() -> object:
        with tenant_scope(acme):
            return write(placed)

    with another_writes(acme, placed):
        other = in_thread(beside)
        wait_until_blocked(superuser)
    assert other.result(timeout=20)
    events = told(acme, placed, after=before)
    assert [kind for _, kind, _, _ in events] == ["other", *kinds]
    with tenant_scope(acme):
        last_log = Execution.objects.get(pk=placed.execution_id).last_log
    assert {data["last_log"] for _, _, _, data in events if "last_log" in data} <= {last_log}


@pytest.mark.parametrize(
    ("write", "kinds"),
    [
        (
            lambda run: end_waiting(run, ExecutionState.CANCELLED, code="C", message=""),
            ["execution.cancelled"],
        ),
        (wake, ["execution.queued"]),
    ],
)
def test_so_does_one_without_a_slot(
    acme: TenantRef,
    claimed: Placement,
    superuser: "psycopg.Connection[tuple[object, ...]]",
    write: Callable[[UUID], object],
    kinds: list[str],
) -> None:
    pause(acme, claimed)
    park(acme, claimed)
    make_due(claimed)

    def beside() -> object:
        with tenant_scope(acme):
            return write(claimed.execution_id)

    with another_writes(acme, claimed):
        other = in_thread(beside)
        wait_until_blocked(superuser)
    assert other.result(timeout=20)
    assert [kind for _, kind, _, _ in told(acme, claimed, after=5)] == ["other", *kinds]


def test_a_second_placement_is_told_of_too(
    acme: TenantRef, boot: WorkerBoot, claimed: Placement
) -> None:
    with tenant_scope(acme):
        hand_back(claimed, LOST)
    again = replace(place(acme, claimed.execution_id, boot), worker=WORKER)
    with tenant_scope(acme):
        claim_step(again, "one", worker=WORKER)
    assert told(acme, claimed, after=4) == [
        (5, "placement.began", "", {"epoch": 2, "worker": WORKER}),
        (6, "step.started", "one", {"attempt": 1, "epoch": 2, "worker": WORKER}),
    ]
