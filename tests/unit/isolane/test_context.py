"""isolane.context: identity, teardown in reverse order, what a step sees."""

from collections.abc import Callable
from typing import Any

import pytest

from isolane.context import ExecutionContext, NodeContext
from isolane.protocol import COSTS_MAX, Cost, Frame, Log, Open, Progress, Run
from isolane.text import LINE_MAX


@pytest.fixture
def execution() -> ExecutionContext:
    return ExecutionContext(
        Open(execution_id="e1", tenant_id="acme", user_id="ada", request_id="r1", epoch=3)
    )


def node_context(
    execution: ExecutionContext, emitted: list[Frame], *, seed: int = 7
) -> NodeContext:
    run = Run(
        step="pay",
        uses="n",
        parameters={},
        variables={"total": 5},
        attempt=2,
        seed=seed,
        timeout_s=1.0,
        idempotency_key="key",
        nonce="n0nce",
    )
    return NodeContext(execution, run, deadline=5.0, emit=emitted.append)


def test_callbacks_run_once_the_last_one_first(execution: ExecutionContext) -> None:
    calls: list[str] = []
    for name in ("a", "b", "c"):
        execution.on_close(lambda name=name: calls.append(name))  # type: ignore[misc]
    assert execution.close() == ()
    assert execution.close() == ()
    assert calls == ["c", "b", "a"]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_failing_callback_stops_no_other_and_is_redacted(
    execution: ExecutionContext, kind: type[BaseException]
) -> None:
    calls: list[str] = []

    def fail() -> None:
        raise kind("password=hunter2")

    execution.on_close(lambda: calls.append("first"))
    execution.on_close(fail)
    execution.on_close(lambda: calls.append("last"))
    (error,) = execution.close()
    assert calls == ["last", "first"]
    assert error.startswith(f"{kind.__name__} in on_close callback ")
    assert "hunter2" not in error


def test_a_callback_may_register_another(execution: ExecutionContext) -> None:
    calls: list[str] = []
    execution.on_close(lambda: execution.on_close(lambda: calls.append("inner")))
    execution.close()
    assert calls == ["inner"]


def test_a_closed_context_takes_no_callback(execution: ExecutionContext) -> None:
    execution.close()
    with pytest.raises(RuntimeError, match="e1 is closed"):
        execution.on_close(lambda: None)


def test_the_identity_cannot_be_changed(execution: ExecutionContext) -> None:
    with pytest.raises(AttributeError):
        execution.identity = ("x", "y", 1)  # type: ignore[misc, assignment]


def test_a_step_sees_its_run(execution: ExecutionContext) -> None:
    ctx = node_context(execution, [])
    assert (ctx.execution_id, ctx.tenant_id, ctx.epoch) == ("e1", "acme", 3)
    assert (ctx.user_id, ctx.request_id) == ("ada", "r1")
    assert (ctx.step, ctx.attempt, ctx.idempotency_key, ctx.deadline) == ("pay", 2, "key", 5.0)
    assert not ctx.cancelled
    execution.cancel()
    assert ctx.cancelled


def test_the_same_seed_gives_the_same_numbers(execution: ExecutionContext) -> None:
    one, same, other = (
        node_context(execution, [], seed=seed).random.random() for seed in (1, 1, 2)
    )
    assert one == same != other


def test_what_a_step_says_is_sent_bounded(execution: ExecutionContext) -> None:
    emitted: list[Frame] = []
    ctx = node_context(execution, emitted)
    ctx.log("x\x00" + "y" * 10_000, level="warning")
    ctx.progress(1.0000001, "done")
    ctx.progress(-1)
    log, done, negative = emitted
    assert isinstance(log, Log)
    assert (log.step, log.level, len(log.message)) == ("pay", "warning", LINE_MAX)
    assert done == Progress(step="pay", fraction=1.0, message="done")
    assert negative == Progress(step="pay", fraction=0.0, message="")
    ctx.cost("tokens", 1)
    assert {getattr(frame, "nonce", None) for frame in emitted} == {"n0nce"}


def test_a_step_registers_at_its_execution(execution: ExecutionContext) -> None:
    calls: list[str] = []
    node_context(execution, []).on_close(lambda: calls.append("closed"))
    execution.close()
    assert calls == ["closed"]


def test_a_step_reports_costs_up_to_a_number(execution: ExecutionContext) -> None:
    emitted: list[Frame] = []
    ctx = node_context(execution, emitted)
    for _ in range(COSTS_MAX):
        ctx.cost("tokens", 812)
    assert emitted == [Cost(step="pay", kind="tokens", amount=812.0)] * COSTS_MAX
    with pytest.raises(ValueError, match="1000 times at most; add them up"):
        ctx.cost("tokens", 1)
    assert len(emitted) == COSTS_MAX


def test_the_last_pause_counts(execution: ExecutionContext) -> None:
    ctx = node_context(execution, [])
    assert ctx.pause_s == 0.0
    ctx.pause(60)
    ctx.pause(0.5)
    assert ctx.pause_s == 0.5


def test_a_step_asks_and_the_last_question_counts(execution: ExecutionContext) -> None:
    ctx = node_context(execution, [])
    assert ctx.question == ""
    ctx.pause(5)
    ctx.ask("Pay 5?", 60)
    ctx.ask("Pay 6\x00?", 3_600)
    assert (ctx.question, ctx.pause_s) == ("Pay 6\ufffd?", 3_600.0)
    with pytest.raises(ValueError, match="asks a person; it cannot pause, too"):
        ctx.pause(1)
    assert ctx.pause_s == 3_600.0


def test_each_step_has_a_memory_of_its_own(execution: ExecutionContext) -> None:
    one, other = node_context(execution, []), node_context(execution, [])
    one.memory["total"] = 6
    assert (one.memory["total"], other.memory["total"]) == (6, 5)


@pytest.mark.parametrize(
    ("use", "error", "reason"),
    [
        (lambda ctx: ctx.log(5), TypeError, "message must be a str, not int"),
        (
            lambda ctx: ctx.log("x", level="loud"),
            ValueError,
            "level 'loud' is not one of debug, info",
        ),
        (lambda ctx: ctx.progress("half"), TypeError, "fraction must be a number, not str"),
        (lambda ctx: ctx.progress(float("nan")), ValueError, "fraction nan is not finite"),
        (lambda ctx: ctx.progress(1, 5), TypeError, "message must be a str, not int"),
        (lambda ctx: ctx.cost("Tokens", 1), ValueError, "kind 'Tokens' does not match"),
        (lambda ctx: ctx.cost(5, 1), TypeError, "kind must be a str, not int"),
        (lambda ctx: ctx.cost("tokens", True), TypeError, "amount must be a number, not bool"),
        (lambda ctx: ctx.cost("tokens", -1), ValueError, "amount -1.0 is not between 0"),
        (lambda ctx: ctx.cost("tokens", float("inf")), ValueError, "amount inf is not finite"),
        (lambda ctx: ctx.pause("1h"), TypeError, "seconds must be a number, not str"),
        (lambda ctx: ctx.pause(-1), ValueError, "seconds -1 is not between 0 and 31622400"),
        (lambda ctx: ctx.pause(float("inf")), ValueError, "seconds inf is not finite"),
        (lambda ctx: ctx.pause(367 * 86_400), ValueError, "seconds 31708800 is not between"),
        (lambda ctx: ctx.ask(5, 60), TypeError, "question must be a str, not int"),
        (lambda ctx: ctx.ask(" \n", 60), ValueError, "the question is empty"),
        (
            lambda ctx: ctx.ask("x" * 2_001, 60),
            ValueError,
            "2001 characters is over the limit of 2000",
        ),
        (lambda ctx: ctx.ask("Pay?", "1h"), TypeError, "expires_s must be a number, not str"),
        (lambda ctx: ctx.ask("Pay?", 0), ValueError, "expires_s 0 is not between 0 and 31622400"),
        (lambda ctx: ctx.ask("Pay?", float("nan")), ValueError, "expires_s nan is not finite"),
        (lambda ctx: ctx.ask("Pay?", 367 * 86_400), ValueError, "expires_s 31708800 is not"),
        (lambda ctx: ctx.on_close("close"), TypeError, "callback must be callable, not str"),
    ],
)
def test_a_bad_argument_is_named(
    execution: ExecutionContext,
    use: Callable[[NodeContext], Any],
    error: type[Exception],
    reason: str,
) -> None:
    emitted: list[Frame] = []
    with pytest.raises(error, match=reason):
        use(node_context(execution, emitted))
    assert emitted == []
