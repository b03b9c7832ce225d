"""isolane.deferred_frames: what may be told later is told once, and in order."""

from collections.abc import Iterator

import pytest

from isolane.channel import channel_pair
from isolane.deferred_frames import DeferredFrames
from isolane.protocol import Frame, Ready, Resource, ResourceEvent
from isolane.stream import Stream

FIRST, SECOND = (f"database_{digit * 32}" for digit in "12")


@pytest.fixture
def ends() -> Iterator[tuple[Stream, Stream]]:
    ours, theirs = channel_pair()
    with ours, theirs:
        yield Stream(ours), Stream(theirs)


@pytest.fixture
def deferred(ends: tuple[Stream, Stream]) -> DeferredFrames:
    return DeferredFrames(ends[0])


def of(event: ResourceEvent, handle: str = FIRST, step: str = "pay") -> Resource:
    return Resource(event=event, name="shop", resource_id=handle, step=step)


def sent_before_an_answer(ends: tuple[Stream, Stream]) -> list[Frame]:
    ends[0].send(Ready())
    found = [ends[1].receive(1)]
    while found[-1] != Ready():
        found.append(ends[1].receive(1))
    return found[:-1]


def test_a_result_tells_what_the_step_was_handed(
    deferred: DeferredFrames, ends: tuple[Stream, Stream]
) -> None:
    for handle in (FIRST, SECOND):
        deferred.add(of("reused", handle))
    assert deferred.take_reused("pay") == {FIRST: "shop", SECOND: "shop"}
    assert deferred.take_reused("pay") == {}
    assert sent_before_an_answer(ends) == []


def test_what_was_closed_after_it_was_handed_on_is_told_in_this_order_before_the_result(
    deferred: DeferredFrames, ends: tuple[Stream, Stream]
) -> None:
    deferred.add(of("reused"))
    deferred.add(of("disposed"))
    assert deferred.take_reused("pay") == {}
    assert sent_before_an_answer(ends) == [of("reused"), of("disposed")]


def test_what_another_step_was_handed_is_not_this_ones(
    deferred: DeferredFrames, ends: tuple[Stream, Stream]
) -> None:
    deferred.add(of("reused", step="earlier"))
    assert deferred.take_reused("pay") == {}
    assert sent_before_an_answer(ends) == [of("reused", step="earlier")]


def test_all_of_it_goes_before_the_next_answer_or_at_once(
    deferred: DeferredFrames, ends: tuple[Stream, Stream]
) -> None:
    deferred.add(of("reused"))
    deferred.hold()
    assert sent_before_an_answer(ends) == [of("reused")]
    deferred.add(of("disposed"))
    deferred.flush()
    assert ends[1].receive(1) == of("disposed")
    assert sent_before_an_answer(ends) == []
