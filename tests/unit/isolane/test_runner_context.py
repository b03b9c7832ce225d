"""isolane.runner_context: handles end with the attempt, the event loop with the context."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from isolane import NodeContext
from isolane.node import NodeRegistry
from isolane.protocol import Frame, Grant, Open, Run
from isolane.results import StepError
from isolane.runner_context import RunnerContext
from tests.unit.isolane.fake_provider import FakeProvider, a_grant

registry = NodeRegistry()


class Stage:
    """An execution that runs nodes of this module."""

    def __init__(self, *grants: Grant) -> None:
        self.provider = FakeProvider()
        self.frames: list[Frame] = []
        opened = Open(
            execution_id="e1",
            tenant_id="acme",
            user_id="ada",
            request_id="r1",
            epoch=1,
            resources=grants,
        )
        self.execution = RunnerContext(opened, self.frames.append, find=self.provider.find)

    def run(self, uses: str) -> Any:
        node = registry.get(uses)
        assert node is not None
        run = Run(
            step="pay", uses=uses, parameters={}, variables={}, attempt=1, seed=1, timeout_s=5.0,
            idempotency_key="key",
        )  # fmt: skip
        return self.execution.attempt(node, run, self.frames.append).output


@pytest.fixture
def never() -> Iterator[threading.Event]:
    NEVER.clear()
    yield NEVER
    NEVER.set()


NEVER = threading.Event()
CALLS: list[str] = []


@registry.node("uses")
def uses(ctx: NodeContext) -> str:
    name: str = ctx.resource("mine").name
    return name


@registry.node("fails")
def fails(ctx: NodeContext) -> None:
    ctx.resource("mine")
    raise SystemExit(3)


@registry.node("returns_too_much")
def returns_too_much(ctx: NodeContext) -> object:
    return ctx.resource("mine")


@registry.node("uses_async")
async def uses_async(ctx: NodeContext) -> int:
    ctx.resource("mine")
    return id(asyncio.get_running_loop())


@registry.node("leaves_a_task")
async def leaves_a_task(ctx: NodeContext) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            CALLS.append("task ended")

    ctx.on_close(lambda: CALLS.append("callback"))
    CALLS.clear()
    globals()["TASK"] = asyncio.create_task(work())
    await asyncio.to_thread(int)
    await asyncio.sleep(0)


@registry.node("leaves_a_stubborn_task")
async def leaves_a_stubborn_task(ctx: NodeContext) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            NEVER.wait(10)

    globals()["TASK"] = asyncio.create_task(work())
    await asyncio.sleep(0)


@registry.node("handles_a_signal")
async def handles_a_signal(ctx: NodeContext) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, int)


@pytest.mark.parametrize("node", ["uses", "fails", "returns_too_much", "uses_async"])
def test_what_a_step_opened_for_itself_is_gone_however_it_ends(node: str) -> None:
    stage = Stage(a_grant("mine", scope="step"))
    if node in {"uses", "uses_async"}:
        stage.run(node)
    else:
        with pytest.raises((SystemExit, StepError)):
            stage.run(node)
    assert stage.provider.disposed == ["mine"]
    assert stage.execution.close() == ()
    assert stage.provider.disposed == ["mine"]


def test_the_event_loop_ends_in_its_place_and_leaves_nothing() -> None:
    stage = Stage(a_grant("mine"))
    before = threading.enumerate()
    assert stage.run("uses_async") == stage.run("uses_async")
    stage.run("leaves_a_task")
    assert stage.execution.close() == ()
    assert CALLS == ["callback", "task ended"]  # what was registered last comes first
    assert threading.enumerate() == before
    with pytest.raises(RuntimeError, match="no current event loop"):
        asyncio.get_event_loop_policy().get_event_loop()
    assert stage.provider.disposed == ["mine"]


def test_a_task_that_does_not_end_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, never: threading.Event
) -> None:
    monkeypatch.setattr("isolane.handles.CALLBACK_SECONDS", 0.2)
    stage = Stage(a_grant("mine"))
    stage.run("uses")
    stage.run("leaves_a_stubborn_task")
    loop = stage.execution._loop
    assert loop is not None
    assert stage.execution.close() == ("Hanging in on_close callback RunnerContext._end_tasks",)
    assert stage.provider.disposed == ["mine"]
    never.set()
    for thread in threading.enumerate():
        if thread.name == "isolane-dispose":
            thread.join(5)
    loop.close()


def test_signals_of_the_event_loop_are_given_back() -> None:
    old = signal.getsignal(signal.SIGUSR2)
    stage = Stage()
    stage.run("handles_a_signal")
    assert signal.getsignal(signal.SIGUSR2) is not old
    assert stage.execution.close() == ()
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
