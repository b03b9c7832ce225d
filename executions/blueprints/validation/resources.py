"""Checks of a blueprint's resources against its steps and the tenant's definitions. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from executions.blueprints.errors import InvalidBlueprint, shown
from executions.blueprints.expressions.resolution import REFERENCE
from executions.blueprints.paths import child
from executions.blueprints.plan import DeclaredResource
from executions.blueprints.suggestions import instead_of
from executions.blueprints.validation.nodes import NodeInfo
from isolane.protocol import ResourceScope

EXECUTION: ResourceScope = "execution"
STEP: ResourceScope = "step"


class Defined(Protocol):
    """The facts needed about a tenant's definition."""

    @property
    def type(self) -> str:
        """The type of the resource."""

    @property
    def scope(self) -> ResourceScope:
        """The widest scope it may be used in."""


def check_declared(declared: Sequence[DeclaredResource]) -> None:
    """Refuse contradictions within a declaration."""
    for resource in declared:
        if resource.eager and resource.scope == STEP:
            where = f"{_where(resource)}.eager"
            raise InvalidBlueprint(
                f"{where}: a resource of scope 'step' is opened by the step; leave eager out or use"
                " scope 'execution'.",
                field=where,
            )


def check_defined(declared: Sequence[DeclaredResource], defined: Mapping[str, Defined]) -> None:
    """Refuse a resource whose definition is missing, of another type, or narrower than declared."""
    for resource in declared:
        reason = mismatch(resource, defined.get(resource.definition))
        if reason:
            raise InvalidBlueprint(f"{_where(resource)}: {reason}", field=_where(resource))


def mismatch(resource: DeclaredResource, defined: Defined | None) -> str:
    """Return the reason why a definition does not fit a declared resource; empty if it does."""
    name = repr(resource.definition)
    if defined is None:
        return f"there is no definition {name}; create it with 'isolane resources create'."
    if defined.type != resource.type:
        return f"the definition {name} is of type {defined.type!r}, not {resource.type!r}."
    if resource.scope == EXECUTION and defined.scope == STEP:
        return (
            f"the definition {name} allows scope 'step' only; a blueprint may narrow a scope, not"
            " widen it."
        )
    if resource.eager and defined.scope == STEP:
        return f"the definition {name} has scope 'step', so it cannot be eager."
    return ""


def scope_of(resource: DeclaredResource, defined: Defined) -> ResourceScope:
    """Return the narrower of both scopes."""
    return STEP if STEP in {resource.scope, defined.scope} else EXECUTION


def check_uses(
    node: NodeInfo,
    parameters: Mapping[str, Any],
    declared: Sequence[DeclaredResource],
    where: str,
) -> None:
    """Refuse a parameter that names an undeclared resource, or one of another type."""
    types = {resource.name: resource.type for resource in declared}
    for parameter, wanted in _resource_parameters(node).items():
        name = parameters.get(parameter)
        if not isinstance(name, str) or REFERENCE.search(name):
            continue  # known at run time only
        path = child(where, parameter)
        if name not in types:
            raise InvalidBlueprint(
                f"{path}: the blueprint declares no resource {shown(repr(name))};"
                f" {instead_of(name, types)}",
                field=path,
            )
        if wanted and types[name] != wanted:
            raise InvalidBlueprint(
                f"{path}: the resource {name!r} is of type {types[name]!r}; node {node.name} needs"
                f" {wanted!r}.",
                field=path,
            )


def _resource_parameters(node: NodeInfo) -> dict[str, str]:
    """Return the parameters that name a resource, with the type of each."""
    properties = node.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: described["resource"]
        for name, described in properties.items()
        if isinstance(described, dict) and isinstance(described.get("resource"), str)
    }


def _where(resource: DeclaredResource) -> str:
    return f"$.resources.{resource.name}"
