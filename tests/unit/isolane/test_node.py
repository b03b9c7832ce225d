"""isolane.node: registration, schema and checking of parameters."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, Optional

import pytest

from isolane.context import NodeContext
from isolane.node import Node, NodeRegistry
from isolane.results import Code, StepError
from isolane.shapes import Limits


@pytest.fixture
def registry() -> NodeRegistry:
    return NodeRegistry()


def everything(
    ctx: NodeContext,
    *,
    text: str,
    verb: Literal["get", "put"],
    share: Annotated[float, Limits(above=0, maximum=1)],
    title: Annotated[str, Limits(min_length=2, max_length=3)],
    count: int,
    ratio: float,
    flag: bool,
    tags: list[str],
    loose: list,  # type: ignore[type-arg]
    table: dict[str, int],
    anything: Any,
    maybe: Annotated[int, Limits(minimum=5)] | None = None,
    perhaps: Optional[str] = "x",  # noqa: UP045 - authors write it, too
) -> None: ...


def registered(registry: NodeRegistry, function: Callable[..., Any]) -> Node:
    registry.node("test.node", deterministic=True)(function)
    found = registry.get("test.node")
    assert found is not None
    return found


GOOD: dict[str, Any] = {
    "text": "a",
    "verb": "get",
    "share": 0.5,
    "title": "ab",
    "count": 1,
    "ratio": 2,
    "flag": True,
    "tags": ["a"],
    "loose": [1, "a"],
    "table": {"a": 1},
    "anything": {"x": [None]},
}


def test_the_schema_follows_the_signature(registry: NodeRegistry) -> None:
    description = registered(registry, everything).description()
    assert (description.name, description.idempotent, description.deterministic) == (
        "test.node",
        False,
        True,
    )
    assert description.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "verb": {"type": "string", "enum": ["get", "put"]},
            "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "title": {"type": "string", "minLength": 2, "maxLength": 3},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "loose": {"type": "array"},
            "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            "anything": {},
            "maybe": {
                "anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}],
                "default": None,
            },
            "perhaps": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"},
        },
        "required": list(GOOD),
        "additionalProperties": False,
    }


def test_good_parameters_pass(registry: NodeRegistry) -> None:
    checked = registered(registry, everything).checked(GOOD | {"maybe": 5})
    assert checked == GOOD | {"maybe": 5}
    assert isinstance(checked["ratio"], float)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": 5}, "parameter text: expected string, got integer"),
        ({"verb": "post"}, "parameter verb: expected one of get, put"),
        ({"share": 0}, "parameter share: 0.0 is not above 0"),
        ({"share": 1.5}, "parameter share: 1.5 is above 1"),
        ({"share": "1"}, "parameter share: expected number, got string"),
        ({"title": "a"}, "parameter title: 1 characters, at least 2 are needed"),
        ({"title": "abcd"}, "parameter title: 4 characters, at most 3 are allowed"),
        ({"maybe": 4}, "parameter maybe: 4 is below 5"),
        ({"count": True}, "parameter count: expected integer, got boolean"),
        ({"count": 1.5}, "parameter count: expected integer, got number"),
        ({"ratio": "1"}, "parameter ratio: expected number, got string"),
        ({"ratio": 10**400}, "parameter ratio: expected number, got one too large"),
        ({"flag": 1}, "parameter flag: expected boolean, got integer"),
        ({"tags": ["a", None]}, r"parameter tags\[1\]: expected string, got null"),
        ({"table": {"a": "b"}}, "parameter table.a: expected integer, got string"),
        ({"table": []}, "parameter table: expected object, got array"),
        ({"maybe": "x"}, "parameter maybe: expected integer, got string"),
        ({"other": 1}, "parameter other: unknown, expected are: text, verb"),
    ],
)
def test_bad_parameters_are_refused_by_name(
    registry: NodeRegistry, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StepError) as caught:
        registered(registry, everything).checked(GOOD | changes)
    assert caught.value.code is Code.POLICY_VIOLATION
    assert caught.match(reason)
    assert caught.match("node test.node")


def test_a_missing_parameter_is_named(registry: NodeRegistry) -> None:
    with pytest.raises(StepError, match=r"parameter text: missing"):
        registered(registry, everything).checked({k: v for k, v in GOOD.items() if k != "text"})


def test_a_name_is_registered_once(registry: NodeRegistry) -> None:
    registry.node("a")(everything)
    with pytest.raises(ValueError, match="node a is registered twice"):
        registry.node("a")(everything)


@pytest.mark.parametrize("name", ["", "A", "a.", ".a", "a..b", "1a", "a-b", "a b", "a\n", "task:a"])
def test_a_name_has_a_form(registry: NodeRegistry, name: str) -> None:
    with pytest.raises(ValueError, match=r"node name .* does not match"):
        registry.node(name)


def test_a_decorator_without_a_name_is_refused(registry: NodeRegistry) -> None:
    with pytest.raises(ValueError, match="node name <function everything"):
        registry.node(everything)  # type: ignore[arg-type]


def test_a_node_is_found_by_its_function(registry: NodeRegistry) -> None:
    assert registered(registry, everything) is registry.of(everything)
    assert registry.of(no_context) is None


def test_a_description_says_what_the_node_is_and_can_give(registry: NodeRegistry) -> None:
    def documented(ctx: NodeContext) -> None:
        """Pay a bill.

        At once.
        """

    registry.node("pay", uses_key=True)(documented)
    registry.node("bare")(everything)
    bare, pay = (node.description() for node in registry)
    assert (pay.summary, pay.uses_key) == ("Pay a bill.", True)
    assert (bare.summary, bare.uses_key) == ("", False)


def test_nodes_are_listed_by_name(registry: NodeRegistry) -> None:
    for name in ("b", "a"):
        registry.node(name)(everything)
    assert [node.name for node in registry] == ["a", "b"]
    assert registry.get("c") is None


def no_context() -> None: ...
def only_keywords(*, a: int) -> None: ...
def positional(ctx: NodeContext, a: int) -> None: ...
def catch_all(ctx: NodeContext, **rest: int) -> None: ...
def untyped(ctx: NodeContext, *, a) -> None: ...  # type: ignore[no-untyped-def]
def unsupported(ctx: NodeContext, *, a: date) -> None: ...
def several(ctx: NodeContext, *, a: int | str) -> None: ...
def bad_default(ctx: NodeContext, *, a: int = "x") -> None: ...  # type: ignore[assignment]
def nan_default(ctx: NodeContext, *, a: float = float("nan")) -> None: ...
def odd_default(ctx: NodeContext, *, a: Any = object()) -> None: ...  # noqa: B008
def odd_choice(ctx: NodeContext, *, a: Literal[1, 2]) -> None: ...
def odd_limit(ctx: NodeContext, *, a: Annotated[int, Limits(min_length=1)]) -> None: ...
def odd_note(ctx: NodeContext, *, a: Annotated[int, "an amount"]) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_context, "the first parameter must be the context"),
        (only_keywords, "the first parameter must be the context"),
        (positional, "parameter a: must be keyword-only"),
        (catch_all, "parameter rest: must be keyword-only"),
        (untyped, "parameter a: needs a type annotation"),
        (unsupported, "parameter a: .*date.* is not one of str, int"),
        (several, "parameter a: .* only X | None is possible"),
        (bad_default, "parameter a: its default: expected integer, got string"),
        (nan_default, "parameter a: not JSON"),
        (odd_default, "parameter a: .*object is not a JSON type"),
        (odd_choice, "parameter a: .*Literal.* is not one of str, int"),
        (odd_limit, "parameter a: minLength is not a limit of integer"),
        (odd_note, "parameter a: .* has annotations other than Limits"),
    ],
)
def test_a_signature_without_schema_is_refused_at_once(
    registry: NodeRegistry, function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason) as caught:
        registry.node("bad")(function)
    assert caught.match("node bad")
    assert registry.get("bad") is None
