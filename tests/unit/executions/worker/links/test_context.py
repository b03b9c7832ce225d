"""executions.worker.links.context: one owner of a placement's state on this worker."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from executions.worker.links.context import Exit, OpenContext
from resources.runtimes.stub import StubBackend
from tests.placements import ACME
from tests.unit.executions.worker.opened import CLAIM, a_context

THREADS = 8


@pytest.fixture
def context() -> OpenContext:
    return a_context()


def test_a_new_context_has_nothing_and_goes_on(context: OpenContext) -> None:
    assert (context.active, context.working) == (0, 0)
    assert (context.runtime, context.has_runtime, context.attempt_log) == (None, False, None)
    assert (context.next_step, context.has_claim_ahead, context.exit) == ("", False, None)
    assert not context.lost
    assert not context.is_over
    assert not context.cancelled.is_set()


@pytest.mark.parametrize(
    "name", ["active", "working", "runtime", "attempt_log", "next_step", "exit", "lost", "is_over"]
)
def test_nobody_else_changes_its_state(context: OpenContext, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(context, name, True)


def test_a_cancel_reaches_the_step_that_runs(context: OpenContext) -> None:
    context.cancel()
    assert context.cancelled.is_set()


def test_its_runtime_is_kept_whether_it_opens_or_not(context: OpenContext) -> None:
    runtime = StubBackend(level="stub", script={}).start(context.placement, identity=ACME)
    context.attach(runtime)
    assert context.has_runtime
    assert context.runtime is runtime


# --- links
def test_a_link_works_until_its_body_ends_and_is_active_until_it_is_counted_out(
    context: OpenContext,
) -> None:
    seen = []
    for step in (context.count_in, context.count_in, context.finish_body, context.count_out):
        step()
        seen.append((context.active, context.working))
    assert seen == [(1, 1), (2, 2), (2, 1), (1, 1)]


@pytest.mark.parametrize("how", ["ended", "lost"])
def test_it_is_over_when_no_link_is_in_it_and_none_will_come(
    context: OpenContext, how: str
) -> None:
    context.count_in()
    if how == "lost":
        context.lose()
    else:
        context.end(Exit.ENDED)
    over = [context.is_over]
    context.finish_body()
    over.append(context.is_over)
    context.count_out()
    over.append(context.is_over)
    assert over == [False, False, True]


def test_without_an_exit_it_goes_on_when_no_link_is_in_it(context: OpenContext) -> None:
    context.count_in()
    context.count_out()
    assert not context.is_over


# --- the claim on the next step
def test_a_link_takes_the_claim_on_its_own_step_once(context: OpenContext) -> None:
    context.advance("two", CLAIM)
    assert context.has_claim_ahead
    assert context.count_in_ahead("one") is None
    assert context.count_in_ahead("two") is CLAIM
    assert context.count_in_ahead("two") is None
    assert (context.active, context.working) == (1, 1)
    assert not context.has_claim_ahead


def test_no_link_takes_the_claim_of_a_lost_context(context: OpenContext) -> None:
    context.advance("two", CLAIM)
    context.lose()
    assert context.count_in_ahead("two") is None
    assert context.active == 0


def test_a_checkpoint_without_a_claim_leaves_none(context: OpenContext) -> None:
    context.advance("two", CLAIM)
    context.advance("three", None)
    assert (context.next_step, context.has_claim_ahead) == ("three", False)
    assert context.take_claim() is None


def test_the_link_that_wrote_the_checkpoint_takes_the_claim_itself(context: OpenContext) -> None:
    context.advance("two", CLAIM)
    assert context.take_claim() is CLAIM
    assert context.take_claim() is None
    assert context.count_in_ahead("two") is None


def test_of_many_threads_one_takes_the_claim(context: OpenContext) -> None:
    for _ in range(50):
        context.advance("two", CLAIM)
        before = context.active
        at_once = threading.Barrier(THREADS)

        def take(number: int, at_once: threading.Barrier = at_once) -> bool:
            at_once.wait(20)
            return bool(context.count_in_ahead("two") if number % 2 else context.take_claim())

        with ThreadPoolExecutor(THREADS) as threads:
            assert sum(threads.map(take, range(THREADS))) == 1
        assert context.active - before in {0, 1}
