"""Nodes: the functions that steps use, found by name."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from isolane.protocol import NodeDescription
from isolane.results import Code, StepError
from isolane.shapes import ShapeError, build, schema_of

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Node:
    """A registered function with what its signature says."""

    name: str
    function: Callable[..., Any]
    hints: Mapping[str, Any]
    defaults: Mapping[str, Any]
    idempotent: bool
    deterministic: bool

    def checked(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters as the signature wants them, or raise a StepError."""
        if unknown := sorted(set(parameters) - set(self.hints)):
            expected = ", ".join(self.hints) or "none"
            raise self._refusal(f"{unknown[0]}: unknown, expected are: {expected}")
        if missing := sorted(set(self.hints) - set(self.defaults) - set(parameters)):
            raise self._refusal(f"{missing[0]}: missing")
        try:
            return {name: build(self.hints[name], v, name) for name, v in parameters.items()}
        except ShapeError as error:
            raise self._refusal(str(error)) from None

    def description(self) -> NodeDescription:
        """Return what a worker needs to know of this node."""
        schemas = {name: schema_of(hint) for name, hint in self.hints.items()}
        for name, default in self.defaults.items():
            schemas[name]["default"] = default
        schema: dict[str, Any] = {
            "type": "object",
            "properties": schemas,
            "required": [name for name in self.hints if name not in self.defaults],
            "additionalProperties": False,
        }
        return NodeDescription(
            name=self.name,
            parameters=schema,
            idempotent=self.idempotent,
            deterministic=self.deterministic,
        )

    def _refusal(self, reason: str) -> StepError:
        return StepError(Code.POLICY_VIOLATION, f"node {self.name}, parameter {reason}")


class NodeRegistry:
    """The nodes of one runner."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def node(
        self, name: str, *, idempotent: bool = False, deterministic: bool = False
    ) -> Callable[[F], F]:
        """Register a function `(ctx, *, typed parameters)` as the node of that name."""

        def register(function: F) -> F:
            if name in self._nodes:
                raise ValueError(f"node {name} is registered twice")
            hints, defaults = _signature(name, function)
            self._nodes[name] = Node(
                name=name,
                function=function,
                hints=hints,
                defaults=defaults,
                idempotent=idempotent,
                deterministic=deterministic,
            )
            return function

        return register

    def get(self, name: str) -> Node | None:
        """Return the node of that name, if there is one."""
        return self._nodes.get(name)

    def __iter__(self) -> Iterator[Node]:
        return iter([self._nodes[name] for name in sorted(self._nodes)])


def _signature(name: str, function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    first, parameters = _split(inspect.signature(function))
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise TypeError(f"node {name}: the first parameter must be the context")
    hints = get_type_hints(function)
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
            json.dumps(build(hints[parameter.name], parameter.default, "its default"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: {error}") from None


default_registry = NodeRegistry()
node = default_registry.node
