"""isolane.context: identity, teardown in reverse order, what a step sees."""

import pytest

from isolane.context import ExecutionContext, NodeContext
from isolane.protocol import Frame, Log, Open, Progress, Run
from isolane.text import LINE_MAX


@pytest.fixture
def execution() -> ExecutionContext:
    return ExecutionContext(Open(execution_id="e1", tenant_id="acme", epoch=3))


def node_context(
    execution: ExecutionContext, emitted: list[Frame], *, seed: int = 7
) -> NodeContext:
    run = Run(
        step="pay",
        uses="n",
        parameters={},
        attempt=2,
        seed=seed,
        timeout_s=1.0,
        idempotency_key="key",
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


def test_a_step_registers_at_its_execution(execution: ExecutionContext) -> None:
    calls: list[str] = []
    node_context(execution, []).on_close(lambda: calls.append("closed"))
    execution.close()
    assert calls == ["closed"]
