"""Connections of a context become events while it is open, the rest with its end; and keep no placement from ending."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone

from executions.explain.connections import REASONS
from executions.models import ExecutionEvent
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links import connection_events
from executions.worker.links.context import OpenContext
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.loops.lease import LeaseLoop
from executions.worker.loops.log_flush import LogFlushLoop
from executions.worker.worker import WorkerProcess
from isolane.results import Code
from resources.gate.connection_log import MAX_SAME_REFUSALS
from resources.gate.record import ConnectionReason, ConnectionRecord
from resources.placement import Placement
from resources.runtimes.stub import StubRuntime, fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.connections import a_connection, a_refusal
from tests.factories import events_of, everything_of, make_placed, run_of, start
from tests.integration.executions.statements import counted, is_named
from tests.integration.executions.worker.driving import (
    doing,
    drive,
    dying,
    in_turn,
    run_link,
    script,
    setting,
)
from tests.integration.executions.worker.lines import Lines

pytestmark = pytest.mark.usefixtures("neighbour", "broker")
CUT = a_connection("cut", reason=ConnectionReason.RUN_ENDED)


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return make_placed(acme, boot)


@pytest.fixture
def gate(acme: TenantRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a gate does: what is open when the runtime is closed is added before that returns."""
    close = StubRuntime.close

    def closing(runtime: StubRuntime, seconds: float) -> tuple[str, ...]:
        if runtime in [context.runtime for context in contexts]:
            contexts[0].connections.add(CUT)
        return close(runtime, seconds)

    contexts: list[OpenContext] = []
    attach = OpenContext.attach

    def attaching(context: OpenContext, runtime: Any) -> None:
        attach(context, runtime)
        if context.placement.tenant_id == acme.id:
            contexts[:] = [context]

    monkeypatch.setattr(OpenContext, "attach", attaching)
    monkeypatch.setattr(StubRuntime, "close", closing)


def context_of(boot: WorkerBoot, placement: Placement) -> OpenContext:
    (found,) = [
        context
        for context in boot.contexts.all()
        if context.placement.execution_id == placement.execution_id
    ]
    return found


def connecting(
    boot: WorkerBoot, placement: Placement, *records: ConnectionRecord
) -> Callable[[], None]:
    """The work of a step that makes these connections."""

    def connect() -> None:
        for record in records:
            context_of(boot, placement).connections.add(record)

    return connect


def told(tenant: TenantRef, placement: Placement) -> list[Any]:
    """The host or counts of each connection, and the kinds of the events that end a placement, in order."""
    events_of(tenant, placement.execution_id)  # numbered without a gap
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution_id=placement.execution_id)
        rows = list(found.order_by("sequence").values_list("kind", "data"))
    return [
        data.get("host", data.get("refused")) if kind.startswith("connection.") else kind
        for kind, data in rows
        if not kind.startswith(("step.", "execution.queued", "placement.began"))
    ]


# --- while it is open
def test_they_are_written_while_the_step_runs(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    seen: list[list[Any]] = []

    def look() -> None:
        LogFlushLoop(boot).turn()
        LogFlushLoop(boot).turn()  # nothing new: nothing written
        seen.append(told(acme, placement))

    def work() -> None:
        for host in ("a", "b"):
            connecting(boot, placement, a_connection(host))()
            look()

    script(boot, work=doing(work, succeeds(1)))
    run_link(links, placement, "one")
    assert seen == [["a"], ["a", "b"]]


def test_what_could_not_be_written_comes_with_the_next_ones(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_link(links, placement, "one")
    connecting(boot, placement, a_connection("a"))()
    with monkeypatch.context() as patch:
        patch.setattr(connection_events, "append_connections", refuse)
        with pytest.raises(OperationalError):
            LogFlushLoop(boot).turn()
    connecting(boot, placement, a_connection("b"))()
    LogFlushLoop(boot).turn()
    assert told(acme, placement) == ["a", "b"]


def test_after_the_placement_nothing_is_written(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    run_link(links, placement, "one")
    connecting(boot, placement, a_connection("a"))()
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    before = everything_of(acme)
    LogFlushLoop(boot).turn()
    assert everything_of(acme) == before


# --- in the message of a failed step
@pytest.mark.parametrize(
    ("reason", "has_broker", "code", "is_added"),
    [
        (ConnectionReason.LOGIN, True, Code.UNKNOWN_ERROR, True),
        (ConnectionReason.LOGIN, True, Code.RESOURCE_ERROR, False),  # whose text has it
        (ConnectionReason.CONNECTIONS, True, Code.RESOURCE_ERROR, True),
        (ConnectionReason.UNREACHABLE, False, Code.TRANSIENT_ERROR, True),
        (ConnectionReason.CLOSED, False, Code.UNKNOWN_ERROR, False),
    ],
)
def test_a_failed_step_says_what_the_gate_did_if_nobody_else_has(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    reason: ConnectionReason,
    code: Code,
    *,
    has_broker: bool,
    is_added: bool,
) -> None:
    def work() -> None:
        fields = {"reason": reason, "has_broker": has_broker, "definition": "shop"}
        record = replace(a_refusal("shop.example", **fields), at=timezone.now())
        connecting(boot, placement, record)()

    script(boot, work=doing(work, fails(code, "it failed.")))
    with pytest.raises(StepFailed):
        run_link(links, placement, "one")
    message = run_of(acme, placement.execution_id).message
    told = f"it failed. At the gate: A connection to shop.example:443 (shop) was refused: {REASONS[reason]}."
    assert message == (told if is_added else "it failed.")


# --- sensitive values
def test_hosts_are_masked_and_wait_until_it_is_known_what_to_mask(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"sensitive": ["token"]}, {})
    seen: list[list[Any]] = []

    def work() -> None:
        connecting(boot, placement, a_refusal("t0ken.evil.com"))()
        LogFlushLoop(boot).turn()
        seen.append(told(acme, placement))

    script(boot, work=in_turn(doing(work, succeeds({"token": "t0ken"})), succeeds(1)))
    drive(acme, links, placement)
    assert seen == [[]]
    assert told(acme, placement) == ["***.evil.com", "execution.succeeded"]


# --- with its end
@pytest.mark.usefixtures("gate")
def test_a_run_that_ends(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    refused = [a_refusal("r")] * (MAX_SAME_REFUSALS + 2)
    script(boot, work=doing(connecting(boot, placement, *refused[:-1]), succeeds(1)))
    drive(acme, links, placement)
    expected = [*["r"] * MAX_SAME_REFUSALS, "cut", MAX_SAME_REFUSALS + 2, "execution.succeeded"]
    assert told(acme, placement) == expected


@pytest.mark.usefixtures("gate")
def test_a_run_that_parks(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    script(boot, work=setting(None, pause_s=90))
    drive(acme, links, placement)
    assert told(acme, placement) == ["cut", "execution.waiting"]


@pytest.mark.usefixtures("gate")
def test_a_run_that_goes_on_in_a_new_context(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, work=in_turn(dying(boot, acme), succeeds(1)))
    placement = start(acme, boot, {"on_failure": "continue"}, {})
    drive(acme, links, placement)
    assert told(acme, placement) == ["cut", "context.restarted", "cut", "execution.succeeded"]


@pytest.mark.usefixtures("gate")
def test_a_placement_that_the_loop_hands_back(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    run_link(links, placement, "one")
    LeaseLoop(boot).hand_back_idle()
    assert told(acme, placement) == ["cut", "placement.handed_over"]


@pytest.mark.usefixtures("gate")
def test_a_context_that_is_lost_while_its_placement_is_not(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement
) -> None:
    """As when a worker stops and its runtimes are killed."""

    def lose() -> None:
        context_of(boot, placement).lose()

    script(boot, work=doing(lose, succeeds(1)))
    drive(acme, links, placement)
    assert told(acme, placement) == ["cut"]
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING


def test_a_worker_that_stops_while_a_context_is_open(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_link(links, placement, "one")
    connecting(boot, placement, a_connection("a"))()
    boot.clocks = replace(boot.clocks, hand_back=0.01)
    process = WorkerProcess(boot)
    ended: list[list[Any]] = []
    process._lease = LeaseLoop(boot)
    monkeypatch.setattr(process._lease, "hand_back_idle", lambda: None)
    monkeypatch.setattr(process, "_end_boot", lambda: ended.append(told(acme, placement)))
    process.shutdown()
    assert ended == [["a"]]


def refuse(*_: object) -> bool:
    raise OperationalError("gone")


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize("by_link", [True, False])
def test_a_failure_to_write_them_keeps_no_placement_from_ending(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    lines: Lines,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
    by_link: bool,
) -> None:
    monkeypatch.setattr(connection_events, "append_connections", refuse)
    if by_link:
        drive(acme, links, placement)
    else:
        run_link(links, placement, "one")
        LeaseLoop(boot).hand_back_idle()
    assert told(acme, placement) == ["execution.succeeded" if by_link else "placement.handed_over"]
    (logged,) = lines.of("resources.runtimes.faults")
    assert logged["message"] == "connections of a run were not written"


def test_a_run_without_connections_costs_no_statement(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    superuser: "psycopg.Connection[tuple[Any, ...]]",
) -> None:
    with counted(superuser) as calls:
        run_link(links, placement, "one")
        LogFlushLoop(boot).turn()
        drive(acme, links, placement)
    assert any(is_named(text, "close") for text in calls)
    assert not [text for text in calls if is_named(text, "append_connections")]
