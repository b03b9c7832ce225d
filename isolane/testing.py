"""For authors of nodes: run one node in a test, without a server.

Timing: returns when the node does; `timeout_s` only sets `ctx.deadline`, and does not end the node.
Model: in this process and thread; an `async def` node on an event loop of its own.
Guarantee: parameters, output and variables are checked as in a runtime, and copied as JSON copies them.
Failure: an exception of the node passes through unchanged, so that pytest points at its line.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

import isolane.nodes  # noqa: F401 - registers the built-in ones
from isolane.node import Node, default_registry
from isolane.protocol import Cost, Frame, Grant, Level, Log, Open, Progress, Run, dump
from isolane.providers.base import Provider
from isolane.providers.registry import provider_of
from isolane.results import StepResult
from isolane.runner_context import RunnerContext

_STEP = "test"
_GIVEN = "given"  # the type of resources that a test passes as objects


@dataclass(frozen=True, kw_only=True)
class NodeRun:
    """The outcome of one run of a node."""

    output: Any
    logs: tuple[tuple[Level, str], ...]  # of ctx.log; what is printed is pytest's to capture
    progress: tuple[tuple[float, str], ...]
    costs: dict[str, float]  # summed by kind
    variables: dict[str, Any]  # that the node set
    pause_s: float
    question: str  # to a person, who has `pause_s` to answer


def run_node(
    function_or_name: Callable[..., Any] | str,
    /,
    *,
    variables: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    seed: int = 0,
    attempt: int = 1,
    idempotency_key: str = "test",
    cancelled: bool = False,
    timeout_s: float = 30.0,
    **parameters: Any,
) -> NodeRun:
    """Run a node once, close its context and return the outcome.

    `resources`: the objects that `ctx.resource(name)` returns, by name. An object, such as a fake, is returned as it is
    and never closed; a `Grant`, whose own name is ignored, is really opened by its provider, and disposed of before
    this returns:

        run_node(fetch, resources={"billing": FakeBilling()}, invoice_id=1)
        run_node(fetch, resources={"billing": Grant(
            name="billing", type="database", definition="billing", scope="execution",
            config={"host": "localhost", "dbname": "shop", "user": "ada"}, secrets={"password": password},
        )}, invoice_id=1)
    """
    node = _node(function_or_name)
    run = Run(
        step=_STEP,
        uses=node.name,
        parameters=json.loads(dump(parameters)),
        variables=json.loads(dump(dict(variables or {}))),
        attempt=attempt,
        seed=seed,
        timeout_s=timeout_s,
        idempotency_key=idempotency_key,
    )
    frames: list[Frame] = []
    execution = _execution(dict(resources or {}), frames.append)
    if cancelled:
        execution.cancel()
    try:
        execution.handles.open_eager()
        result = execution.attempt(node, run, frames.append)
    finally:
        errors = execution.close()
    if errors:
        raise RuntimeError("; ".join(errors))
    return _collected(result, frames)


@pytest.fixture
def node_run() -> Callable[..., NodeRun]:
    """`run_node`, for tests that take it as a fixture."""
    return run_node


def _node(function_or_name: Callable[..., Any] | str) -> Node:
    if isinstance(function_or_name, str):
        found = default_registry.get(function_or_name)
    else:
        found = default_registry.of(function_or_name)
    if found is None:
        raise LookupError(
            f"{function_or_name!r} is not a node; import its module, decorate it with @node"
        )
    return found


class _Given(Provider[Any]):
    """Returns the objects of the test."""

    type = _GIVEN
    config = dict

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self._objects = objects

    def create(self, grant: Grant, tag: str) -> Any:
        return self._objects[grant.name]

    def check(self, handle: Any) -> dict[str, Any]:
        return {}

    def dispose(self, handle: Any) -> None:
        """Leave it open: the test may still use it."""


def _execution(resources: dict[str, Any], emit: Callable[[Frame], None]) -> RunnerContext:
    given = _Given(resources)

    def find(kind: str) -> Provider[Any]:
        return given if kind == _GIVEN else provider_of(kind)

    opened = Open(
        execution_id=_STEP,
        tenant_id=_STEP,
        user_id=_STEP,
        request_id=_STEP,
        epoch=1,
        resources=tuple(_grant(name, value) for name, value in resources.items()),
    )
    return RunnerContext(opened, emit, find=find)


def _grant(name: str, value: Any) -> Grant:
    if isinstance(value, Grant):
        return replace(value, name=name)
    return Grant(name=name, type=_GIVEN, definition=name, scope="execution", config={}, secrets={})


def _collected(result: StepResult, frames: list[Frame]) -> NodeRun:
    costs: dict[str, float] = {}
    for frame in frames:
        if isinstance(frame, Cost):
            costs[frame.kind] = costs.get(frame.kind, 0.0) + frame.amount
    return NodeRun(
        output=json.loads(dump(result.output)),
        logs=tuple((frame.level, frame.message) for frame in frames if isinstance(frame, Log)),
        progress=tuple((f.fraction, f.message) for f in frames if isinstance(f, Progress)),
        costs=costs,
        variables=result.variables,
        pause_s=result.pause_s,
        question=result.question,
    )
