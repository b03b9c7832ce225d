"""executions.semantics.resource_tracker: handles and credentials from first to last."""

from datetime import UTC, datetime, timedelta

import pytest

from executions.semantics.record_error import RecordErrorCode
from executions.semantics.resource_tracker import (
    MAX_FRAMES,
    MAX_HANDLES,
    Disposition,
    ResourceTracker,
)
from isolane.protocol import Grant, ProtocolError, Resource, ResourceEvent

START = datetime(2026, 1, 1, tzinfo=UTC)


def grant(name: str = "db", definition: str = "billing") -> Grant:
    return Grant(
        name=name, type="database", definition=definition, scope="execution", config={}, secrets={}
    )


def handle(number: int) -> str:
    return f"database_{number:032x}"


def said(
    event: ResourceEvent, number: int = 1, name: str = "db", step: str = "s1", error: str = ""
) -> Resource:
    return Resource(event=event, name=name, resource_id=handle(number), step=step, error=error)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def tracker() -> ResourceTracker:
    made = ResourceTracker(now=Clock())
    made.set_grants([grant()])
    return made


def test_a_handle_is_open_from_its_allocation_to_its_disposal(tracker: ResourceTracker) -> None:
    opened = tracker.report(said("allocated"))
    assert (opened.ended, opened.closed_at, opened.definition) == (
        Disposition.OPEN,
        None,
        "billing",
    )
    closed = tracker.report(said("disposed"))
    assert closed.ended is Disposition.DISPOSED
    assert closed.closed_at is not None
    assert closed.closed_at > opened.opened_at
    assert tracker.end_killed() == []


def test_a_reuse_changes_nothing(tracker: ResourceTracker) -> None:
    opened = tracker.report(said("allocated"))
    assert tracker.report(said("reused", step="s2")) is opened
    assert tracker.report(said("reused", step="")) is opened  # what is eager may come late


def test_what_never_came_to_be_has_failed_at_once(tracker: ResourceTracker) -> None:
    failed = tracker.report(said("failed", error="no route"))
    assert (failed.ended, failed.closed_at, failed.error) == (
        Disposition.FAILED,
        failed.opened_at,
        "no route",
    )


def test_a_handle_that_could_not_be_closed_goes_with_its_runtime(tracker: ResourceTracker) -> None:
    tracker.report(said("allocated"))
    assert tracker.report(said("disposed", error="it hangs")).ended is Disposition.OPEN
    (killed,) = tracker.end_killed()
    assert (killed.ended, killed.error) == (Disposition.KILLED, "it hangs")
    assert tracker.end_killed() == []


def test_what_was_issued_does_not_go_with_the_runtime(tracker: ResourceTracker) -> None:
    tracker.add_credential(grant(), "database.role", "iso_1")
    assert tracker.end_killed() == []
    assert tracker.unwritten() == []  # the ledger has it already
    assert tracker.keep_unrevoked("iso_1", "unreachable").ended is Disposition.OPEN
    assert tracker.end_revoked("iso_1").ended is Disposition.DISPOSED
    (changed,) = tracker.unwritten()
    assert (changed.type, changed.error) == ("database.role", "")


@pytest.mark.parametrize(
    "frame",
    [
        said("allocated", name="other"),
        said("disposed", 2),
        said("reused", 2),
        said("allocated", 1),
        said("failed", 1),
        said("reused", 1),
        Resource(event="allocated", name="db", resource_id=f"cache_{2:032x}"),
    ],
    ids=[
        "not granted",
        "disposed unknown",
        "reused unknown",
        "allocated twice",
        "failed twice",
        "reused by the step that opened it",
        "of another type",
    ],
)
def test_a_runtime_is_not_believed_what_cannot_be(
    tracker: ResourceTracker, frame: Resource
) -> None:
    tracker.report(said("allocated"))
    with pytest.raises(ProtocolError):
        tracker.report(frame)


def test_what_has_ended_cannot_end_again(tracker: ResourceTracker) -> None:
    tracker.report(said("allocated"))
    tracker.report(said("disposed"))
    with pytest.raises(ProtocolError):
        tracker.report(said("disposed"))


def test_two_names_of_one_definition_share_a_handle() -> None:
    tracker = ResourceTracker(now=Clock())
    tracker.set_grants([grant("a"), grant("b"), grant("c", definition="other")])
    opened = tracker.report(said("allocated", name="a"))
    assert tracker.report(said("reused", name="b", step="s2")) is opened
    with pytest.raises(ProtocolError, match="no handle"):
        tracker.report(said("reused", name="c", step="s3"))


def test_only_what_has_changed_is_written_again(tracker: ResourceTracker) -> None:
    tracker.report(said("allocated", 1))
    tracker.report(said("allocated", 2))
    first = tracker.unwritten()
    assert [held.resource_id for held in first] == [handle(1), handle(2)]
    tracker.report(said("disposed", 2))  # while the others are being written
    tracker.mark_written(first)
    assert [held.resource_id for held in tracker.unwritten()] == [handle(2)]


def test_a_step_cannot_fill_the_ledger(tracker: ResourceTracker) -> None:
    for number in range(MAX_HANDLES):
        tracker.report(said("failed", number))
    with pytest.raises(ProtocolError, match="10000"):
        tracker.report(said("allocated", MAX_HANDLES))


def test_what_was_never_issued_has_to_be_revoked_by_nobody(tracker: ResourceTracker) -> None:
    tracker.add_credential(grant(), "database.role", "iso_1")
    assert tracker.ended_credentials() == []
    failed = tracker.end_not_issued("iso_1")
    assert (failed.ended, failed.error_code) == (Disposition.FAILED, RecordErrorCode.NOT_ISSUED)
    assert (failed.error, failed.error_text) == ("", "not issued")
    tracker.mark_written(tracker.unwritten())
    assert tracker.ended_credentials() == ["iso_1"]


def test_a_step_is_told_once_that_it_uses_a_handle(tracker: ResourceTracker) -> None:
    for number in (1, 2):
        tracker.report(said("allocated", number))
        tracker.report(said("reused", number, step="s2"))
    with pytest.raises(ProtocolError, match=r"'s2' has database_0+1 already"):
        tracker.report(said("reused", 1, step="s2"))


@pytest.mark.parametrize("event", ["reused", "disposed"])
def test_what_could_not_be_closed_is_spoken_of_no_more(
    tracker: ResourceTracker, event: ResourceEvent
) -> None:
    tracker.report(said("allocated"))
    tracker.report(said("disposed", error="it hangs"))
    with pytest.raises(ProtocolError, match="no handle"):
        tracker.report(said(event, step="s2"))
    assert len(tracker.end_killed()) == 1


def test_a_step_cannot_fill_the_log(
    tracker: ResourceTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_FRAMES > 2 * MAX_HANDLES + 50 * 1000  # resources and steps of the largest blueprint
    monkeypatch.setattr("executions.semantics.resource_tracker.MAX_FRAMES", 3)
    tracker.report(said("allocated"))
    for step in ("s2", "s3"):
        tracker.report(said("reused", step=step))
    with pytest.raises(ProtocolError, match="more than 3 frames"):
        tracker.report(said("disposed"))


def test_a_handle_is_opened_by_a_step_of_the_run_or_by_the_context() -> None:
    tracker = ResourceTracker(now=Clock())
    tracker.set_grants([grant()], steps=["fetch", "pay"])
    tracker.report(said("allocated", step="fetch"))
    tracker.report(said("reused", step="pay"))
    tracker.report(said("disposed", step=""))
    with pytest.raises(ProtocolError, match="'s1' is not a step of this run"):
        tracker.report(said("allocated", 2))


@pytest.mark.parametrize("step", ["\x1b[2J", "Pay", "a b", "a\n"])
def test_where_the_steps_are_not_known_their_names_have_a_form(
    tracker: ResourceTracker, step: str
) -> None:
    with pytest.raises(ProtocolError, match="is not a step"):
        tracker.report(said("allocated", step=step))


# --- what was issued is not the runtime's
@pytest.mark.parametrize("event", ["allocated", "failed", "reused", "disposed"])
def test_a_runtime_cannot_speak_of_what_was_issued(
    tracker: ResourceTracker, event: ResourceEvent
) -> None:
    tracker.add_credential(grant(), "database.role", handle(1))  # a name as handles have it
    with pytest.raises(ProtocolError):
        tracker.report(said(event))
    assert (tracker.ended_credentials(), tracker.unwritten(), tracker.end_killed()) == ([], [], [])
    assert tracker.end_revoked(handle(1)).type == "database.role"
