"""isolane.traces: what operators see of an unexpected exception."""

import asyncio
import json

import pytest

from isolane import NodeContext
from isolane.node import NodeRegistry
from isolane.protocol import Open, Run
from isolane.runner_context import RunnerContext
from isolane.text import TRACE_MAX
from isolane.traces import place_of, trace_of

registry = NodeRegistry()


@registry.node("below")
def below(ctx: NodeContext) -> None:
    inner()


@registry.node("below.later")
async def below_later(ctx: NodeContext) -> None:
    await asyncio.sleep(0)
    inner()


@registry.node("our.own")
def our_own(ctx: NodeContext) -> None:
    ctx.log(5)  # type: ignore[arg-type]


def inner() -> None:
    try:
        dict[str, int]()["first"]
    except KeyError as error:
        raise ValueError("second") from error


def raised_by(name: str) -> BaseException:
    node = registry.get(name)
    assert node is not None
    opened = Open(execution_id="e", tenant_id="t", user_id="u", request_id="r", epoch=1)
    run = Run(
        step="s",
        uses=name,
        parameters={},
        variables={},
        attempt=1,
        seed=1,
        timeout_s=1.0,
        idempotency_key="k",
    )
    execution = RunnerContext(opened)
    with pytest.raises((ValueError, TypeError)) as caught:
        execution.attempt(node, run, lambda frame: None)
    execution.close()
    return caught.value


@pytest.mark.parametrize("name", ["below", "below.later"])
def test_it_begins_with_the_authors_frame_and_keeps_the_cause(name: str) -> None:
    error = raised_by(name)
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # the frame of this very test
    trace = trace_of(error)
    cause, _, shown = trace.partition("\nThe above exception was the direct cause")
    assert "KeyError: 'first'" in cause
    assert shown.splitlines()[3].endswith(f"in {name.replace('.', '_')}")
    assert trace.endswith("ValueError: second\n")
    assert "isolane/runner_context.py" not in trace
    assert "asyncio" not in shown


def test_it_goes_into_our_code_where_the_author_called_it() -> None:
    trace = trace_of(raised_by("our.own"))
    assert "in our_own" in trace
    assert "TypeError: message must be a str, not int" in trace


def test_the_end_of_a_long_one_is_kept() -> None:
    trace = trace_of(ValueError("x" * 50_000 + "\x00 the end"))
    assert len(trace) == TRACE_MAX
    assert trace.startswith("…xxx")
    assert trace.endswith("\ufffd the end\n")


def test_an_exception_that_cannot_be_shown_has_a_trace() -> None:
    class Hostile(Exception):
        def __getattribute__(self, name: str) -> object:
            if name.startswith("__notes"):
                raise RuntimeError("no")
            return super().__getattribute__(name)

    assert trace_of(Hostile("x")).splitlines()[-1].startswith("Hostile")


def caught(code: str, filename: str = "/srv/shop/__init__.py", **names: object) -> BaseException:
    """Run code as a module of an author, and return what it raises without the frame of this test."""
    with pytest.raises(Exception) as raised:
        exec(compile(code, filename, "exec"), {"__name__": "shop", **names})
    error = raised.value
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
    return error


@pytest.mark.parametrize(
    ("code", "line"),
    [
        pytest.param("\n\nimport nowhere", 3, id="in the module"),
        pytest.param("\njson.loads('{')", 2, id="below, in the standard library"),
        pytest.param(
            "def x(ctx, *, y: 'Missing'): ...\n\n\nregistry.node('bad.x')(x)",
            4,
            id="below, on our behalf",
        ),
    ],
)
def test_the_place_is_the_authors_last_line(code: str, line: int) -> None:
    error = caught(code, json=json, registry=NodeRegistry())
    assert place_of(error) == f"…/shop/__init__.py:{line}: "


def test_the_place_of_a_syntax_error_is_its_own() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("\nx = (", "/srv/shop/cart.py", "exec")
    assert place_of(raised.value) == "…/shop/cart.py:2: "


def test_a_place_is_bounded_and_may_be_missing() -> None:
    place = place_of(caught("1 / 0", f"/srv/{'x' * 5000}/cart.py"))
    assert len(place) < 130
    assert place.endswith("x/cart.py:1: ")
    assert place_of(ValueError("never raised")) == ""
