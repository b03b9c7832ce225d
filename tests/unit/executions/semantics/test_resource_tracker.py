"""What a context holds of its resources."""

from datetime import UTC, datetime, timedelta

import pytest

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
def holdings() -> ResourceTracker:
    made = ResourceTracker(now=Clock())
    made.granted([grant()])
    return made


def test_a_handle_is_open_from_its_allocation_to_its_disposal(holdings: ResourceTracker) -> None:
    opened = holdings.hear(said("allocated"))
    assert (opened.ended, opened.closed_at, opened.definition) == (
        Disposition.OPEN,
        None,
        "billing",
    )
    closed = holdings.hear(said("disposed"))
    assert closed.ended is Disposition.DISPOSED
    assert closed.closed_at is not None
    assert closed.closed_at > opened.opened_at
    assert holdings.killed() == []


def test_a_reuse_changes_nothing(holdings: ResourceTracker) -> None:
    opened = holdings.hear(said("allocated"))
    assert holdings.hear(said("reused", step="s2")) is opened
    assert holdings.hear(said("reused", step="")) is opened  # what is eager may come late


def test_what_never_came_to_be_has_failed_at_once(holdings: ResourceTracker) -> None:
    failed = holdings.hear(said("failed", error="no route"))
    assert (failed.ended, failed.closed_at, failed.error) == (
        Disposition.FAILED,
        failed.opened_at,
        "no route",
    )


def test_a_handle_that_could_not_be_closed_goes_with_its_runtime(holdings: ResourceTracker) -> None:
    holdings.hear(said("allocated"))
    assert holdings.hear(said("disposed", error="it hangs")).ended is Disposition.OPEN
    (killed,) = holdings.killed()
    assert (killed.ended, killed.error) == (Disposition.KILLED, "it hangs")
    assert holdings.killed() == []


def test_what_was_issued_does_not_go_with_the_runtime(holdings: ResourceTracker) -> None:
    holdings.issued(grant(), "database.role", "iso_1")
    assert holdings.killed() == []
    assert holdings.unwritten() == []  # the ledger has it already
    assert holdings.revoked("iso_1", "unreachable").ended is Disposition.OPEN
    assert holdings.revoked("iso_1").ended is Disposition.DISPOSED
    (changed,) = holdings.unwritten()
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
    holdings: ResourceTracker, frame: Resource
) -> None:
    holdings.hear(said("allocated"))
    with pytest.raises(ProtocolError):
        holdings.hear(frame)


def test_what_has_ended_cannot_end_again(holdings: ResourceTracker) -> None:
    holdings.hear(said("allocated"))
    holdings.hear(said("disposed"))
    with pytest.raises(ProtocolError):
        holdings.hear(said("disposed"))


def test_two_names_of_one_definition_share_a_handle() -> None:
    holdings = ResourceTracker(now=Clock())
    holdings.granted([grant("a"), grant("b"), grant("c", definition="other")])
    opened = holdings.hear(said("allocated", name="a"))
    assert holdings.hear(said("reused", name="b", step="s2")) is opened
    with pytest.raises(ProtocolError, match="no handle"):
        holdings.hear(said("reused", name="c", step="s3"))


def test_only_what_has_changed_is_written_again(holdings: ResourceTracker) -> None:
    holdings.hear(said("allocated", 1))
    holdings.hear(said("allocated", 2))
    first = holdings.unwritten()
    assert [held.resource_id for held in first] == [handle(1), handle(2)]
    holdings.hear(said("disposed", 2))  # while the others are being written
    holdings.written(first)
    assert [held.resource_id for held in holdings.unwritten()] == [handle(2)]


def test_a_step_cannot_fill_the_ledger(holdings: ResourceTracker) -> None:
    for number in range(MAX_HANDLES):
        holdings.hear(said("failed", number))
    with pytest.raises(ProtocolError, match="10000"):
        holdings.hear(said("allocated", MAX_HANDLES))


def test_what_was_never_issued_has_to_be_revoked_by_nobody(holdings: ResourceTracker) -> None:
    holdings.issued(grant(), "database.role", "iso_1")
    assert holdings.gone() == []
    failed = holdings.never_made("iso_1", "not issued")
    assert (failed.ended, failed.error) == (Disposition.FAILED, "not issued")
    holdings.written(holdings.unwritten())
    assert holdings.gone() == ["iso_1"]


def test_a_step_is_told_once_that_it_uses_a_handle(holdings: ResourceTracker) -> None:
    for number in (1, 2):
        holdings.hear(said("allocated", number))
        holdings.hear(said("reused", number, step="s2"))
    with pytest.raises(ProtocolError, match=r"'s2' has database_0+1 already"):
        holdings.hear(said("reused", 1, step="s2"))


@pytest.mark.parametrize("event", ["reused", "disposed"])
def test_what_could_not_be_closed_is_spoken_of_no_more(
    holdings: ResourceTracker, event: ResourceEvent
) -> None:
    holdings.hear(said("allocated"))
    holdings.hear(said("disposed", error="it hangs"))
    with pytest.raises(ProtocolError, match="no handle"):
        holdings.hear(said(event, step="s2"))
    assert len(holdings.killed()) == 1


def test_a_step_cannot_fill_the_log(
    holdings: ResourceTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_FRAMES > 2 * MAX_HANDLES + 50 * 1000  # resources and steps of the largest blueprint
    monkeypatch.setattr("executions.semantics.resource_tracker.MAX_FRAMES", 3)
    holdings.hear(said("allocated"))
    for step in ("s2", "s3"):
        holdings.hear(said("reused", step=step))
    with pytest.raises(ProtocolError, match="more than 3 frames"):
        holdings.hear(said("disposed"))


def test_a_handle_is_opened_by_a_step_of_the_run_or_by_the_context() -> None:
    holdings = ResourceTracker(now=Clock())
    holdings.granted([grant()], steps=["fetch", "pay"])
    holdings.hear(said("allocated", step="fetch"))
    holdings.hear(said("reused", step="pay"))
    holdings.hear(said("disposed", step=""))
    with pytest.raises(ProtocolError, match="'s1' is no step of this run"):
        holdings.hear(said("allocated", 2))


@pytest.mark.parametrize("step", ["\x1b[2J", "Pay", "a b", "a\n"])
def test_where_the_steps_are_not_known_their_names_have_a_form(
    holdings: ResourceTracker, step: str
) -> None:
    with pytest.raises(ProtocolError, match="is no step"):
        holdings.hear(said("allocated", step=step))


# --- what was issued is not the runtime's
@pytest.mark.parametrize("event", ["allocated", "failed", "reused", "disposed"])
def test_a_runtime_cannot_speak_of_what_was_issued(
    holdings: ResourceTracker, event: ResourceEvent
) -> None:
    holdings.issued(grant(), "database.role", handle(1))  # a name as handles have it
    with pytest.raises(ProtocolError):
        holdings.hear(said(event))
    assert (holdings.gone(), holdings.unwritten(), holdings.killed()) == ([], [], [])
    assert holdings.revoked(handle(1)).type == "database.role"
