"""isolane.testing: one node, run for its author."""

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from isolane import NodeContext
from isolane.names import RESOURCE_ID
from isolane.node import default_registry
from isolane.results import StepError
from isolane.testing import NodeRun, node_run, run_node  # noqa: F401 - a fixture is used by name
from tests import nodes
from tests.unit.isolane.fake_provider import FakeProvider, a_grant, raising

RECORDED: list[object] = []


@pytest.fixture(scope="module", autouse=True)
def everything() -> None:
    @default_registry.node("test.everything")
    def everything(ctx: NodeContext, *, items: list[int]) -> tuple[int, ...]:
        ctx.on_close(lambda: RECORDED.append("closed"))
        ctx.log("counting", level="debug")
        ctx.progress(0.5, "half")
        ctx.cost("tokens", 2)
        ctx.cost("tokens", 3)
        ctx.cost("calls", 1)
        ctx.memory["seen"] = ctx.memory["before"]
        ctx.pause(5)
        return tuple(items)


def test_it_returns_all_that_the_node_did() -> None:
    RECORDED.clear()
    assert run_node("test.everything", variables={"before": [1]}, items=[1, 2]) == NodeRun(
        output=[1, 2],
        logs=(("debug", "counting"),),
        progress=((0.5, "half"),),
        costs={"tokens": 5.0, "calls": 1.0},
        variables={"seen": [1]},
        pause_s=5.0,
        question="",
    )
    assert RECORDED == ["closed"]


def test_a_node_that_asks_has_no_output_whatever_it_returns() -> None:
    @default_registry.node("test.asks")
    def asks(ctx: NodeContext) -> int:
        ctx.memory["asked"] = True
        ctx.ask("Pay?", 60)
        return 1

    run = run_node("test.asks")
    assert (run.output, run.question, run.pause_s) == (None, "Pay?", 60.0)
    assert run.variables == {"asked": True}


def test_functions_are_run_as_well_as_names_and_async_ones() -> None:
    assert run_node(nodes.add, a=2).output == run_node("test.add", a=2).output == 3


def test_the_context_is_as_asked() -> None:
    run = run_node(
        nodes.identity, seed=7, attempt=3, idempotency_key="k", cancelled=True, timeout_s=5.0
    )
    assert (run.output["attempt"], run.output["idempotency_key"]) == (3, "k")
    assert run.output["cancelled"]
    assert run.output["random"] == pytest.approx(0.32383276483316237)
    assert 4 < run.output["remaining"] <= 5


def test_an_exception_points_at_the_line_of_the_author() -> None:
    with pytest.raises(ValueError, match="hunter2") as caught:
        run_node("test.raise_later")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "_explode"


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("test.add", {"a": "x"}, "parameter a: expected integer"),
        ("test.add", {}, "parameter a: missing"),
        ("test.output", {"kind": "set"}, "returned what cannot be kept"),
        ("test.output", {"kind": "large"}, "over the limit"),
    ],
)
def test_what_a_runtime_refuses_is_refused(
    name: str, parameters: dict[str, str], reason: str
) -> None:
    with pytest.raises(StepError, match=reason):
        run_node(name, **parameters)  # type: ignore[arg-type]


def test_a_failing_teardown_is_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError in on_close callback"):
        run_node("test.on_close", file=str(tmp_path / "file"), fail=True)
    assert (tmp_path / "file").read_text() == "last registered\nfirst registered\n"


class Closeable:
    """A fake of an author's own."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def with_resources() -> str:
    @default_registry.node("test.with_resources")
    def with_resources(ctx: NodeContext, *, names: list[str]) -> list[object]:
        RECORDED[:] = [ctx.resource(name) for name in names]
        return [[ctx.resource_id(name), ctx.check_resource(name)] for name in names]

    return "test.with_resources"


def test_an_object_is_handed_out_as_it_is(with_resources: str) -> None:
    fake, other = Closeable(), Closeable()
    output = run_node(
        with_resources, resources={"billing": fake, "shop": other}, names=["billing", "shop"]
    ).output
    assert [RECORDED[0] is fake, RECORDED[1] is other, fake.closed] == [True, True, False]
    assert [RESOURCE_ID.fullmatch(found) is not None for found, _ in output] == [True, True]
    assert [said for _, said in output] == [{}, {}]


@pytest.mark.parametrize("eager", [True, False])
def test_a_grant_is_opened_and_disposed_of(
    with_resources: str, eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = FakeProvider()
    monkeypatch.setattr("isolane.testing.provider_of", provider.find)
    resources = {"billing": a_grant("of no interest", eager=eager), "fake": Closeable()}
    output = run_node(with_resources, resources=resources, names=["billing", "fake"]).output
    assert output[0][1] == {"alive": True}
    assert provider.created == provider.disposed == ["billing"]


def test_a_grant_that_cannot_be_disposed_of_is_said(
    with_resources: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = FakeProvider()
    provider.disposing["billing"] = raising(ValueError("away"))
    monkeypatch.setattr("isolane.testing.provider_of", provider.find)
    with pytest.raises(RuntimeError, match="resource billing of type fake was not closed"):
        run_node(with_resources, resources={"billing": a_grant("billing")}, names=["billing"])


def test_without_resources_none_is_declared(with_resources: str) -> None:
    with pytest.raises(StepError, match=r"'billing' is not declared .*: none"):
        run_node(with_resources, names=["billing"])


@pytest.mark.parametrize("unknown", ["nowhere.node", test_it_returns_all_that_the_node_did])
def test_what_is_no_node_is_named(unknown: object) -> None:
    with pytest.raises(LookupError, match="is not a node; import its module"):
        run_node(unknown)  # type: ignore[arg-type]


def test_the_fixture_is_the_same(node_run: object) -> None:  # noqa: F811
    assert node_run is run_node


def test_only_this_module_of_the_package_needs_pytest() -> None:
    script = (
        "import sys, pkgutil, importlib, isolane\n"
        "sys.modules['pytest'] = None\n"
        "for m in pkgutil.walk_packages(isolane.__path__, 'isolane.'):\n"
        "    if m.name != 'isolane.testing': importlib.import_module(m.name)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
