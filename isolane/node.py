"""Nodes: the functions that steps use, registered by name."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, get_type_hints

from isolane.names import NODE
from isolane.protocol import NodeDescription, dump
from isolane.results import Code, StepError
from isolane.shapes import ShapeError, build, schema_of
from isolane.text import MESSAGE_MAX, storable

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Node:
    """A registered function with its signature."""

    name: str
    function: Callable[..., Any]
    hints: Mapping[str, Any]
    required: frozenset[str]
    defaults: Mapping[str, Any]  # of the optional ones, if they are JSON
    takes_context: bool = True
    idempotent: bool = False
    deterministic: bool = False
    uses_key: bool = False

    @cached_property
    def is_async(self) -> bool:
        """True if the function must be awaited."""
        return inspect.iscoroutinefunction(self.function)

    def call(self, ctx: object, parameters: Mapping[str, Any]) -> Any:
        """Call the function with checked parameters."""
        if self.takes_context:
            return self.function(ctx, **parameters)
        return self.function(**parameters)

    def checked(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters as the signature demands, or raise a StepError."""
        if unknown := sorted(parameters.keys() - self.hints.keys()):
            expected = ", ".join(self.hints) or "none"
            raise self._refusal(f"{unknown[0]}: unknown, expected are: {expected}")
        if missing := sorted(self.required - parameters.keys()):
            raise self._refusal(f"{missing[0]}: missing")
        try:
            return {name: build(self.hints[name], v, name) for name, v in parameters.items()}
        except ShapeError as error:
            raise self._refusal(str(error)) from None

    def description(self) -> NodeDescription:
        """Return the description of this node for workers."""
        schemas = {name: schema_of(hint) for name, hint in self.hints.items()}
        for name, default in self.defaults.items():
            schemas[name]["default"] = default
        schema: dict[str, Any] = {
            "type": "object",
            "properties": schemas,
            "required": [name for name in self.hints if name in self.required],
            "additionalProperties": False,
        }
        return NodeDescription(
            name=self.name,
            parameters=schema,
            idempotent=self.idempotent,
            deterministic=self.deterministic,
            uses_key=self.uses_key,
            summary=_summary(self.function),
        )

    def _refusal(self, reason: str) -> StepError:
        return StepError(Code.POLICY_VIOLATION, f"node {self.name}, parameter {reason}")


class NodeRegistry:
    """The nodes of one runner."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def node(
        self,
        name: str,
        *,
        idempotent: bool = False,
        deterministic: bool = False,
        uses_key: bool = False,
    ) -> Callable[[F], F]:
        """Register a function `(ctx, *, typed parameters)` as the node of that name.

        `idempotent`: running it again changes nothing more. `deterministic`: the same parameters and
        seed give the same output. `uses_key`: it sends `ctx.idempotency_key` to a remote server that honours it.
        """
        if not NODE.fullmatch(str(name)):  # a bare @node passes the function
            raise ValueError(f"node name {name!r} does not match {NODE.pattern}")

        def register(function: F) -> F:
            hints, defaults = _signature(name, function)
            self.add(
                Node(
                    name=name,
                    function=function,
                    hints=hints,
                    required=frozenset(hints.keys() - defaults.keys()),
                    defaults=defaults,
                    idempotent=idempotent,
                    deterministic=deterministic,
                    uses_key=uses_key,
                )
            )
            return function

        return register

    def add(self, node: Node) -> None:
        """Register a node."""
        if node.name in self._nodes:
            raise ValueError(f"node {node.name} is registered twice")
        self._nodes[node.name] = node

    def get(self, name: str) -> Node | None:
        """Return the node of that name, if there is one."""
        return self._nodes.get(name)

    def of(self, function: Callable[..., Any]) -> Node | None:
        """Return the node that this function was registered as, if it was."""
        return next((node for node in self._nodes.values() if node.function is function), None)

    def __iter__(self) -> Iterator[Node]:
        return iter([self._nodes[name] for name in sorted(self._nodes)])


def _signature(name: str, function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    first, parameters = _split(inspect.signature(function))
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise TypeError(f"node {name}: the first parameter must be the context")
    hints = get_type_hints(function, include_extras=True)
    for parameter in parameters:
        _check_parameter(name, parameter, hints)
    empty = inspect.Parameter.empty
    defaults = {p.name: p.default for p in parameters if p.default is not empty}
    return {p.name: hints[p.name] for p in parameters}, defaults


def _split(
    signature: inspect.Signature,
) -> tuple[inspect.Parameter | None, list[inspect.Parameter]]:
    parameters = list(signature.parameters.values())
    return (parameters[0] if parameters else None), parameters[1:]


def _check_parameter(node_name: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> None:
    where = f"node {node_name}, parameter {parameter.name}"
    if parameter.kind is not parameter.KEYWORD_ONLY:
        raise TypeError(f"{where}: must be keyword-only, after a *")
    if parameter.name not in hints:
        raise TypeError(f"{where}: needs a type annotation")
    try:
        schema_of(hints[parameter.name])
        if parameter.default is not parameter.empty:
            dump(build(hints[parameter.name], parameter.default, "its default"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: {error}") from None


def _summary(function: Callable[..., Any]) -> str:
    lines = (inspect.getdoc(function) or "").splitlines()
    return storable(lines[0].strip(), MESSAGE_MAX) if lines else ""


default_registry = NodeRegistry()
node = default_registry.node
