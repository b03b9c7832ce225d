"""isolane.handles: opened once, handed out again, disposed of in reverse order, and said so."""

import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from isolane.handles import Hanging, Teardown, _wait, run_within
from isolane.names import RESOURCE_ID
from isolane.results import Code, StepError
from isolane.text import MESSAGE_MAX
from tests.unit.isolane.fake_provider import LONGER, SECRET, Scene, a_grant, raising


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """The event that a hanging disposal waits for; set in the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


# --- opening
def test_nothing_is_opened_before_it_is_asked_for() -> None:
    scene = Scene(a_grant("billing"))
    scene.execution.handles.open_eager()
    ctx = scene.step()
    assert scene.provider.created == []
    assert scene.frames == []
    assert ctx.resource("billing").name == "billing"
    assert scene.provider.tags == {"exec_e1/3/acme"}
    (frame,) = scene.resources
    assert (frame.event, frame.name, frame.step, frame.error) == ("allocated", "billing", "pay", "")
    assert RESOURCE_ID.fullmatch(frame.resource_id)
    assert frame.resource_id.startswith("fake_")
    assert ctx.resource_id("billing") == frame.resource_id


def test_all_steps_share_a_handle_and_its_first_use_in_each_is_said() -> None:
    scene = Scene(a_grant("billing"))
    first = scene.step("fetch")
    one, other = first.resource("billing"), first.resource("billing")
    scene.end(first)
    for _ in range(2):  # attempts
        later = scene.step("pay")
        assert one is other is later.resource("billing") is later.resource("billing")
        scene.end(later)
    assert scene.said == [("allocated", "billing", "fetch"), ("reused", "billing", "pay")]
    assert len({frame.resource_id for frame in scene.resources}) == 1


def test_a_broken_handle_is_replaced_when_it_is_asked_for_again() -> None:
    scene = Scene(a_grant("billing"))
    first = scene.step("fetch")
    one = first.resource("billing")
    scene.provider.broken = {"billing"}
    scene.provider.creating["billing"] = scene.provider.broken.clear  # the new one is whole
    other = first.resource("billing")
    assert other is not one
    assert first.resource("billing") is other
    scene.end(first)
    assert scene.execution.close() == ()
    assert [event for event, *_ in scene.said] == [
        "allocated",
        "disposed",
        "allocated",
        "disposed",
    ]
    assert scene.provider.disposed == ["billing", "billing"]


def test_two_names_of_one_definition_share_a_handle() -> None:
    scene = Scene(a_grant("a", definition="db"), a_grant("b", definition="db"), a_grant("c"))
    ctx = scene.step()
    assert ctx.resource("a") is ctx.resource("b") is not ctx.resource("c")
    scene.execution.close()
    assert scene.provider.created == ["a", "c"]
    assert scene.provider.disposed == ["c", "a"]


def test_the_scopes_of_one_definition_do_not_share() -> None:
    scene = Scene(a_grant("a", definition="db"), a_grant("b", definition="db", scope="step"))
    ctx = scene.step()
    assert ctx.resource("a") is not ctx.resource("b")


def test_parallel_threads_get_the_same_handle() -> None:
    scene = Scene(a_grant("billing"))
    ctx, together = scene.step(), threading.Barrier(8)

    def ask(_number: int) -> object:
        together.wait(5)
        return ctx.resource("billing")

    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(ask, range(8)))
    assert len(set(map(id, handles))) == 1
    assert scene.said == [("allocated", "billing", "pay")]


def test_different_resources_open_at_the_same_time() -> None:
    scene = Scene(a_grant("a"), a_grant("b"))
    both = threading.Barrier(2)
    scene.provider.creating = {name: lambda: both.wait(5) for name in "ab"}
    ctx = scene.step()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(ctx.resource, "ab"))
    assert [handle.name for handle in found] == ["a", "b"]


def test_an_undeclared_resource_is_refused_with_the_declared_ones() -> None:
    for scene, declared in ((Scene(a_grant("b"), a_grant("a")), "a, b"), (Scene(), "none")):
        with pytest.raises(StepError, match=f"'x' is not declared .* are: {declared}") as caught:
            scene.step().resource("x")
        assert caught.value.code is Code.POLICY_VIOLATION
        assert scene.frames == []
    with pytest.raises(TypeError, match="a resource's name must be a str, not int"):
        Scene().step().resource(5)  # type: ignore[arg-type]


# --- eager
def test_what_is_eager_is_opened_with_the_context_at_the_same_time() -> None:
    scene = Scene(
        a_grant("a", eager=True), a_grant("b", eager=True), a_grant("c"),
        a_grant("d", eager=True, scope="step"), a_grant("same", definition="a", eager=True),
    )  # fmt: skip
    both = threading.Barrier(2)
    scene.provider.creating = {name: lambda: both.wait(5) for name in ("a", "b")}
    scene.provider.creating["same"] = scene.provider.creating["a"]
    scene.execution.handles.open_eager()
    assert len(scene.provider.created) == 2
    assert {(event, step) for event, _, step in scene.said} == {("allocated", "")}
    scene.step().resource("b")
    assert scene.said[-1] == ("reused", "b", "pay")


def test_what_is_eager_and_fails_is_tried_again_when_it_is_asked_for() -> None:
    scene = Scene(a_grant("a", eager=True), a_grant("b", eager=True))
    scene.provider.creating["a"] = raising(SystemExit("away"))
    scene.execution.handles.open_eager()
    assert sorted(scene.said) == [("allocated", "b", ""), ("failed", "a", "")]
    scene.provider.creating.clear()
    assert scene.step().resource("a").name == "a"


def test_what_is_eager_and_hangs_holds_nobody(
    monkeypatch: pytest.MonkeyPatch, never: threading.Event
) -> None:
    monkeypatch.setattr("isolane.handles.EAGER_SECONDS", 0.05)
    scene = Scene(a_grant("a", eager=True), a_grant("b", eager=True))
    scene.provider.creating["a"] = lambda: never.wait(10)
    scene.execution.handles.open_eager()
    assert scene.step().resource("b").name == "b"
    never.set()
    assert scene.step().resource("a").name == "a"  # waits for the one that is being opened
    assert scene.provider.created.count("a") == 1


# --- failing to open
@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_cannot_be_opened_is_a_resource_error_without_secrets(
    kind: type[BaseException],
) -> None:
    scene = Scene(a_grant("billing"))
    text = f"no login\n with {LONGER}, {SECRET}" + " and more" * 1000
    scene.provider.creating["billing"] = raising(kind(text))
    with pytest.raises(StepError) as caught:
        scene.step().resource("billing")
    error = caught.value
    assert error.code is Code.RESOURCE_ERROR
    start = f"{kind.__name__}: no login with ***, *** and more"
    assert error.message.startswith(f"resource billing of type fake cannot be opened: {start}")
    assert error.__cause__ is error.__context__ is None  # no text of the driver's is dragged along
    (frame,) = scene.resources
    assert (frame.event, frame.step, len(frame.error)) == ("failed", "pay", MESSAGE_MAX)
    assert frame.error.startswith(start)
    assert SECRET not in f"{error.message}{frame.error}"
    scene.provider.creating.clear()
    assert scene.step().resource("billing").name == "billing"
    assert len({frame.resource_id for frame in scene.resources}) == 2


def test_half_a_secret_does_not_stay_at_the_cut() -> None:
    scene = Scene(a_grant("billing"))
    begin = "x" * (MESSAGE_MAX - len("ValueError: ") - 8)
    scene.provider.creating["billing"] = raising(ValueError(begin + SECRET + "y" * 50))
    with pytest.raises(StepError):
        scene.step().resource("billing")
    assert SECRET[:4] not in scene.resources[0].error


def test_an_error_whose_text_cannot_be_made_is_named() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    scene = Scene(a_grant("billing"))
    scene.provider.creating["billing"] = raising(Odd())
    with pytest.raises(StepError, match="cannot be opened: Odd"):
        scene.step().resource("billing")


def test_a_type_that_this_runtime_lacks_is_a_resource_error() -> None:
    scene = Scene(a_grant("billing", kind="other"))
    with pytest.raises(StepError, match=r"of type other cannot be opened: LookupError: .*unknown"):
        scene.step().resource("billing")
    assert scene.said == [("failed", "billing", "pay")]


# --- disposal
def test_handles_and_callbacks_end_in_one_reverse_order() -> None:
    scene = Scene(a_grant("a"), a_grant("b"))
    ctx, order = scene.step(), scene.provider.disposed
    ctx.resource("a")
    ctx.on_close(lambda: order.append("first callback"))
    ctx.resource("b")
    ctx.on_close(lambda: order.append("last callback"))
    scene.end(ctx)
    assert order == []
    assert scene.execution.close() == scene.execution.close() == ()
    assert order == ["last callback", "b", "first callback", "a"]
    assert scene.said[2:] == [("disposed", "b", ""), ("disposed", "a", "")]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_failing_disposal_stops_no_other_and_is_reported_without_secrets(
    kind: type[BaseException],
) -> None:
    scene = Scene(a_grant("a"), a_grant("b"), a_grant("c"))
    scene.provider.disposing["b"] = raising(kind(f"with {SECRET}"))
    ctx = scene.step()
    for name in "abc":
        ctx.resource(name)
    reason = f"{kind.__name__}: with ***"
    assert scene.execution.close() == (f"resource b of type fake was not closed: {reason}",)
    assert scene.execution.close() == ()
    assert scene.provider.disposed == ["c", "b", "a"]
    ends = [(frame.name, frame.error) for frame in scene.resources if frame.event == "disposed"]
    assert ends == [("c", ""), ("b", reason), ("a", "")]


def test_hanging_disposals_are_abandoned_each_after_its_own_time(
    monkeypatch: pytest.MonkeyPatch, never: threading.Event
) -> None:
    monkeypatch.setattr("isolane.handles.CALLBACK_SECONDS", 0.1)
    scene = Scene(a_grant("a"), a_grant("b"))
    scene.provider.disposing["b"] = lambda: never.wait(10)
    ctx = scene.step()
    ctx.resource("a")
    ctx.on_close(lambda: never.wait(10))
    ctx.resource("b")
    handle, callback = scene.execution.close()
    assert handle == "resource b of type fake was not closed: Hanging: not done within 0.2 s"
    assert callback.startswith("Hanging in on_close callback ")
    assert scene.provider.disposed == ["b", "a"]
    assert [event for event, _, _ in scene.said].count("disposed") == 2


def test_a_closed_context_hands_out_nothing_and_says_nothing() -> None:
    scene = Scene(a_grant("open"), a_grant("other"))
    ctx = scene.step()
    ctx.resource("open")
    scene.execution.close()
    said = list(scene.said)
    for use in (ctx.resource, ctx.resource_id, ctx.check_resource, scene.step().resource):
        for name in ("open", "other"):
            with pytest.raises(RuntimeError, match="the context of e1 is closed"):
                use(name)
    assert scene.said == said
    assert scene.provider.created == ["open"]


def test_a_closed_context_holds_no_secret() -> None:
    scene = Scene(a_grant("a"), a_grant("b"))
    ctx = scene.step()
    handles = scene.execution.handles
    ctx.resource("a")
    scene.execution.close()
    assert SECRET not in repr([vars(handles), vars(handles.context_scope), vars(ctx.attempt_scope)])
    assert handles._grants == {}


def test_what_opens_while_the_context_closes_is_disposed_of_at_once(never: threading.Event) -> None:
    scene = Scene(a_grant("slow"))
    begun = threading.Event()

    def create() -> None:
        begun.set()
        never.wait(10)

    scene.provider.creating["slow"] = create
    ctx = scene.step()
    with ThreadPoolExecutor(1) as threads:
        left = threads.submit(ctx.resource, "slow")
        assert begun.wait(5)
        assert scene.execution.close() == ()
        never.set()
        with pytest.raises(RuntimeError, match="was over before it was open"):
            left.result(5)
    assert scene.provider.created == scene.provider.disposed == ["slow"]
    assert scene.frames == []  # the stream may be another execution's by now


def test_a_forked_child_has_no_handles_and_disposes_of_none() -> None:
    scene = Scene(a_grant("a"), a_grant("mine", scope="step"))
    ctx = scene.step()
    ctx.resource("a")
    ctx.resource("mine")
    pid = os.fork()  # noqa: TID251 - what a step may do
    if pid == 0:
        code = 1
        try:
            with pytest.raises(RuntimeError, match="a forked process has no resources"):
                ctx.resource("a")
            scene.end(ctx)
            scene.execution.close()
            code = 0 if scene.provider.disposed == [] and len(scene.frames) == 2 else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    scene.end(ctx)
    assert scene.provider.disposed == ["mine"]


# --- scope: step
def test_a_handle_of_a_step_ends_with_its_attempt() -> None:
    scene = Scene(a_grant("a", scope="step"), a_grant("b", scope="step"), a_grant("run"))
    first = scene.step("fetch")
    one = first.resource("a")
    assert one is first.resource("a")
    for name in ("run", "b"):
        first.resource(name)
    scene.end(first)
    assert scene.provider.disposed == ["b", "a"]
    assert scene.said[-2:] == [("disposed", "b", "fetch"), ("disposed", "a", "fetch")]
    second = scene.step("fetch")
    assert second.resource("a") is not one
    assert second.resource_id("a") not in {f.resource_id for f in scene.resources[:-1]}
    scene.end(second)
    scene.execution.close()
    assert scene.provider.disposed == ["b", "a", "a", "run"]


def test_an_attempt_that_is_over_is_handed_nothing() -> None:
    scene = Scene(a_grant("a", scope="step"), a_grant("run"))
    ctx = scene.step()
    ctx.resource("run")
    scene.end(ctx)
    for name in ("a", "run"):
        with pytest.raises(RuntimeError, match="this attempt of step pay is over"):
            ctx.resource(name)


def test_what_a_step_could_not_dispose_of_is_reported_at_close() -> None:
    scene = Scene(a_grant("a", scope="step"))
    scene.provider.disposing["a"] = raising(ValueError(SECRET))
    ctx = scene.step()
    ctx.resource("a")
    scene.end(ctx)
    assert scene.resources[-1].error == "ValueError: ***"
    assert scene.execution.close() == ("resource a of type fake was not closed: ValueError: ***",)
    assert scene.execution.close() == ()


def test_what_opens_when_its_attempt_is_over_is_disposed_of_and_said(
    never: threading.Event,
) -> None:
    scene = Scene(a_grant("slow", scope="step"))
    begun = threading.Event()

    def create() -> None:
        begun.set()
        never.wait(10)

    scene.provider.creating["slow"] = create
    ctx = scene.step()
    with ThreadPoolExecutor(1) as threads:
        left = threads.submit(ctx.resource, "slow")
        assert begun.wait(5)
        scene.end(ctx)
        never.set()
        with pytest.raises(RuntimeError, match="resource slow: the attempt or context was over"):
            left.result(5)
    assert scene.provider.disposed == ["slow"]
    assert scene.said == [("failed", "slow", "pay")]


# --- a sign of life
def test_a_check_asks_the_remote_server_of_the_same_handle() -> None:
    scene = Scene(a_grant("a"))
    ctx = scene.step()
    assert ctx.check_resource("a") == {"alive": True}
    ctx.resource("a")
    assert scene.said == [("allocated", "a", "pay")]


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            ValueError(f"no {SECRET}"),
            Code.RESOURCE_ERROR,
            "resource a of type fake does not answer: ValueError: no ***",
        ),
        (StepError(Code.TIMEOUT, f"slow {SECRET}"), Code.TIMEOUT, "slow ***"),
    ],
)
def test_a_failing_check_is_a_step_error_without_secrets(
    raised: Exception, code: Code, message: str
) -> None:
    scene = Scene(a_grant("a"))
    scene.provider.checking = raising(raised)
    with pytest.raises(StepError, match=f"^{re.escape(str((code, message)))}$") as caught:
        scene.step().check_resource("a")
    assert (caught.value.code, caught.value.message) == (code, message)
    assert caught.value.__context__ is None


# --- the stack and its threads
def test_a_stack_that_ran_takes_nothing_more() -> None:
    teardown = Teardown()
    assert teardown.push(lambda: "said")
    assert teardown.push(raising(KeyboardInterrupt()))
    assert teardown.run() == ("KeyboardInterrupt in the teardown", "said")
    assert not teardown.push(lambda: "")
    assert teardown.run() == ()


def test_a_disposal_leaves_no_thread_and_hands_over_what_it_raised() -> None:
    before = set(threading.enumerate())
    error = ValueError()
    assert run_within(raising(error), 5) is error
    assert run_within(lambda: None, 5) is None
    assert set(threading.enumerate()) <= before


def test_a_handler_that_a_step_left_does_not_cut_the_waiting() -> None:
    class Interrupted(threading.Event):
        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt  # as a signal handler would
            self.set()
            return True

    finished = Interrupted()
    assert _wait(finished, time.monotonic() + 5)
    assert finished.waits == 2


def test_without_threads_it_is_disposed_of_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))
    calls: list[str] = []
    assert run_within(lambda: calls.append("done"), 5) is None
    assert isinstance(run_within(raising(SystemExit(1)), 5), SystemExit)
    assert calls == ["done"]
    scene = Scene(a_grant("a", eager=True))
    scene.execution.handles.open_eager()
    assert scene.frames == []
    assert scene.step().resource("a").name == "a"


def test_hanging_says_how_long(never: threading.Event) -> None:
    error = run_within(lambda: never.wait(10), 0.01)
    assert isinstance(error, Hanging)
    assert str(error) == "not done within 0.01 s"
