"""The output of steps: seen while they run, numbered without a gap, written once, and never against the fence."""

import pytest
from django.db import OperationalError

from executions.models import ExecutionEvent, StepLog
from executions.semantics.reasons import EndReason
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links import attempt_log
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.log_flush import LogFlushLoop
from isolane.protocol import Log, Progress
from isolane.results import Code
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, everything_of, logs_of, run_of, start
from tests.integration.executions.worker.driving import (
    doing,
    drive,
    in_turn,
    run_link,
    saying,
    script,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


def log(*messages: str) -> list[Log]:
    return [Log(step="s1", level="warning", message=message) for message in messages]


def test_lines_are_kept_with_step_attempt_and_level(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(
        boot,
        flaky=in_turn(
            saying(log("a"), fails(Code.TRANSIENT_ERROR)), saying(log("b", "c"), succeeds(1))
        ),
    )
    placement = start(acme, boot, {"uses": "flaky", "on_failure": "retry"}, {})
    drive(acme, links, placement)
    assert logs_of(acme, placement.execution_id) == ["a", "b", "c"]
    with tenant_scope(acme):
        kept = list(StepLog.objects.order_by("number").values_list("step", "attempt", "level"))
    assert kept == [("s1", 1, "warning"), ("s1", 2, "warning"), ("s1", 2, "warning")]


def test_they_can_be_read_while_the_step_runs(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"uses": "flaky"}, {})
    seen: list[list[str]] = []
    loop = LogFlushLoop(boot)

    def look() -> None:
        loop.turn()
        loop.turn()  # nothing new: nothing written
        seen.append(logs_of(acme, placement.execution_id))

    first: list[Log | Progress] = [
        *log("one", "two"),
        Progress(step="s1", fraction=0.5, message="half"),
    ]
    script(
        boot,
        flaky=saying(
            first, doing(look, saying(log("three"), doing(look, saying(log("end"), succeeds(1)))))
        ),
    )
    run_link(links, placement, "s1")
    assert seen == [["one", "two"], ["one", "two", "three"]]
    assert logs_of(acme, placement.execution_id) == ["one", "two", "three", "end"]
    assert events_of(acme, placement.execution_id)[3:] == [
        "step.progress", "step.log", "step.log", "step.succeeded", "step.started",
    ]  # fmt: skip
    with tenant_scope(acme):
        data = {event.kind: event.data for event in ExecutionEvent.objects.all()}
    assert data["step.progress"] == {"attempt": 1, "fraction": 0.5, "message": "half"}
    assert data["step.log"] == {"attempt": 1, "lines": 1, "last_log": 3}
    assert data["step.succeeded"]["last_log"] == 4


def test_what_a_sensitive_step_says_is_held_until_it_is_known_what_to_mask(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"uses": "flaky", "sensitive": ["token"]}, {})
    seen: list[list[str]] = []

    def look() -> None:
        LogFlushLoop(boot).turn()
        seen.append(logs_of(acme, placement.execution_id))

    made = succeeds({"token": "t0ken"})
    script(boot, flaky=saying(log("made t0ken"), doing(look, made)))
    run_link(links, placement, "s1")
    assert seen == [[]]
    assert logs_of(acme, placement.execution_id) == ["made ***"]


def test_lines_that_could_not_be_written_come_with_the_next_ones_and_in_order(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = start(acme, boot, {"uses": "flaky"}, {})

    def refuse(*_: object, **__: object) -> bool:
        raise OperationalError("gone")

    def fail_to_write() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(attempt_log, "append_output", refuse)
            with pytest.raises(OperationalError):
                LogFlushLoop(boot).turn()

    script(boot, flaky=saying(log("one"), doing(fail_to_write, saying(log("two"), succeeds(1)))))
    run_link(links, placement, "s1")
    assert logs_of(acme, placement.execution_id) == ["one", "two"]


def test_after_the_placement_nothing_is_written(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"uses": "flaky"}, {})
    rows: list[object] = []

    def lose_and_flush() -> None:
        with tenant_scope(acme):
            assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
        rows.append(everything_of(acme))
        LogFlushLoop(boot).turn()
        rows.append(everything_of(acme))

    script(boot, flaky=saying(log("lost"), doing(lose_and_flush, succeeds(1))))
    drive(acme, links, placement)
    assert rows[0] == rows[1] == everything_of(acme)
    assert run_of(acme, placement.execution_id).last_log == 0


def test_a_journal_that_is_closed_is_not_written_by_the_loop(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    """The rest goes with the checkpoint, and nothing twice."""
    script(boot, flaky=saying(log("only"), succeeds(1)))
    placement = start(acme, boot, {"uses": "flaky"}, {})
    run_link(links, placement, "s1")
    before = everything_of(acme)
    LogFlushLoop(boot).turn()
    assert everything_of(acme) == before
    assert logs_of(acme, placement.execution_id) == ["only"]
