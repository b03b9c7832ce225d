"""executions.worker.links.contexts: each context is opened once and closed once, whatever the order of its links."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from executions.worker.links.context import Exit, OpenContext
from executions.worker.links.contexts import Contexts
from tests.unit.executions.worker.opened import CLAIM, a_context

THREADS = 8


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("executions.worker.links.contexts.time.monotonic", found)
    return found


@pytest.fixture
def contexts() -> Contexts:
    return Contexts()


def opened(contexts: Contexts, run: str = "e1", *, epoch: int = 1) -> OpenContext:
    """A context that one link has joined."""
    context = a_context(run, epoch=epoch)
    return contexts.join(context.placement, lambda: context)


# --- threads at work on a placement
def test_idle_time_is_counted_from_the_first_question(contexts: Contexts, clock: Clock) -> None:
    key = a_context().key
    assert contexts.idle_seconds(key) == 0
    clock.now += 3
    assert contexts.idle_seconds(key) == 3


def test_a_placement_is_idle_from_the_end_of_its_last_link(
    contexts: Contexts, clock: Clock
) -> None:
    key = a_context().key
    contexts.link_begins(key)
    contexts.link_begins(key)
    clock.now += 5
    contexts.link_ends(key)
    assert (contexts.idle_seconds(key), contexts.any_in_flight()) == (0, True)
    contexts.link_ends(key)
    clock.now += 2
    assert (contexts.idle_seconds(key), contexts.any_in_flight()) == (2, False)


def test_a_reset_counts_anew(contexts: Contexts, clock: Clock) -> None:
    key = a_context().key
    contexts.idle_seconds(key)
    clock.now += 5
    contexts.reset_idle(key)
    clock.now += 1
    assert contexts.idle_seconds(key) == 1


def test_placements_that_are_over_are_forgotten(contexts: Contexts, clock: Clock) -> None:
    held, over = a_context("held").key, a_context("over").key
    for key in (held, over):
        contexts.idle_seconds(key)
    clock.now += 5
    contexts.forget({held})
    assert (contexts.idle_seconds(held), contexts.idle_seconds(over)) == (5, 0)


# --- joining
def test_all_links_of_a_placement_join_one_context(contexts: Contexts) -> None:
    first = opened(contexts)
    again = contexts.join(first.placement, lambda: pytest.fail("another context"))
    assert again is first
    assert first.active == 2
    assert contexts.all() == [first]


def test_placements_of_one_run_have_contexts_of_their_own(contexts: Contexts) -> None:
    first, second = opened(contexts), opened(contexts, epoch=2)
    assert first is not second
    assert contexts.get(first.key) is first
    assert contexts.get(second.key) is second


def test_a_context_that_cannot_be_made_is_not_open(contexts: Contexts) -> None:
    def fail() -> OpenContext:
        raise RuntimeError("the execution is gone")

    context = a_context()
    with pytest.raises(RuntimeError):
        contexts.join(context.placement, fail)
    assert contexts.all() == []


def test_a_link_joins_ahead_of_its_claim_once(contexts: Contexts) -> None:
    key = a_context().key
    assert contexts.join_ahead(key, "two") is None
    context = opened(contexts)
    assert contexts.join_ahead(key, "two") is None
    context.advance("two", CLAIM)
    assert contexts.join_ahead(key, "one") is None
    assert contexts.join_ahead(key, "two") == (context, CLAIM)
    assert contexts.join_ahead(key, "two") is None
    assert context.active == 2


# --- leaving
def test_the_link_that_leaves_last_closes_a_context_that_has_ended(contexts: Contexts) -> None:
    context = opened(contexts)
    contexts.join(context.placement, a_context)
    context.end(Exit.ENDED)
    assert not contexts.leave(context)
    assert contexts.leave(context)
    assert contexts.get(context.key) is None


def test_a_context_that_goes_on_stays_open_without_links(contexts: Contexts) -> None:
    context = opened(contexts)
    assert not contexts.leave(context)
    assert not contexts.take(context)
    assert contexts.get(context.key) is context


def test_of_many_links_that_leave_at_once_one_closes(contexts: Contexts) -> None:
    for number in range(30):
        context = opened(contexts, f"e{number}")
        for _ in range(THREADS - 1):
            contexts.join(context.placement, a_context)
        context.end(Exit.ENDED)
        assert sum(_at_once([lambda found=context: contexts.leave(found)] * THREADS)) == 1  # type: ignore[misc]  # bound
        assert contexts.get(context.key) is None


def test_a_close_that_failed_is_taken_again_once(contexts: Contexts) -> None:
    context = opened(contexts)
    context.end(Exit.ENDED)
    assert contexts.leave(context)
    assert not contexts.take(context)
    contexts.put_back(context)
    assert contexts.take(context)
    assert not contexts.take(context)


# --- abandoning
def test_a_context_in_which_a_body_is_at_work_is_not_abandoned(contexts: Contexts) -> None:
    context = opened(contexts)
    assert not contexts.abandon(context)
    lost = [context.lost]
    context.finish_body()  # its link may still publish the next one
    assert contexts.abandon(context)
    lost.append(context.lost)
    assert lost == [False, True]
    assert contexts.get(context.key) is None
    assert not contexts.abandon(context)


def test_a_context_that_a_link_is_about_to_join_is_not_abandoned(contexts: Contexts) -> None:
    context = opened(contexts)
    context.finish_body()
    with contexts.claiming(context.key):
        assert not contexts.abandon(context)
    with pytest.raises(ValueError, match="no database"), contexts.claiming(context.key):
        raise ValueError("no database")
    assert contexts.abandon(context)


def test_no_link_gets_into_an_abandoned_context(contexts: Contexts) -> None:
    context = opened(contexts)
    context.finish_body()
    context.advance("two", CLAIM)
    assert contexts.abandon(context)
    assert contexts.join_ahead(context.key, "two") is None


def test_a_link_joins_or_the_loop_abandons_never_both(contexts: Contexts) -> None:
    for number in range(50):
        context = opened(contexts, f"e{number}")
        context.finish_body()
        context.advance("two", CLAIM)
        joined, abandoned = _at_once(
            [
                lambda found=context: contexts.join_ahead(found.key, "two") is not None,  # type: ignore[misc]  # bound
                lambda found=context: contexts.abandon(found),  # type: ignore[misc]  # bound
            ]
        )
        assert joined is not abandoned
        assert context.lost is abandoned


def _at_once(calls: list[Callable[[], bool]]) -> list[bool]:
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], bool]) -> bool:
        barrier.wait(20)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
