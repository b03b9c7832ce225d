"""Validation of declared resources against the steps of a blueprint and the tenant's definitions. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from executions.blueprints.errors import InvalidBlueprint, shown
from executions.blueprints.expressions.resolution import REFERENCE
from executions.blueprints.paths import child
from executions.blueprints.plan import DeclaredResource
from executions.blueprints.suggestions import instead_of
from executions.blueprints.validation.nodes import NodeInfo
from isolane.protocol import ResourceScope
from resources.definition_ref import DefinitionRef

EXECUTION: ResourceScope = "execution"
STEP: ResourceScope = "step"


def check_declared(declared: Sequence[DeclaredResource]) -> None:
    """Refuse declarations that contradict themselves, whatever the definitions are."""
    for resource in declared:
        if resource.eager and resource.scope == STEP:
            where = f"{_where(resource)}.eager"
            raise InvalidBlueprint(
                f"{where}: a resource of scope 'step' is opened by the step; leave eager out or use"
                " scope 'execution'.",
                field=where,
            )


def check_defined(
    declared: Sequence[DeclaredResource], defined: Mapping[str, DefinitionRef]
) -> None:
    """Refuse a resource whose definition is missing, of another type, or narrower than asked for."""
    for resource in declared:
        reason = mismatch(resource, defined.get(resource.definition))
        if reason:
            raise InvalidBlueprint(f"{_where(resource)}: {reason}", field=_where(resource))


def mismatch(resource: DeclaredResource, defined: DefinitionRef | None) -> str:
    """Return why a definition does not fit a declared resource; empty if it fits."""
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


def scope_of(resource: DeclaredResource, defined: DefinitionRef) -> ResourceScope:
    """Return the effective scope: the narrower of both."""
    return STEP if STEP in {resource.scope, defined.scope} else EXECUTION


def check_uses(
    node: NodeInfo,
    parameters: Mapping[str, Any],
    declared: Sequence[DeclaredResource],
    where: str,
) -> None:
    """Refuse parameters that name an undeclared resource, or one of another type."""
    types = {resource.name: resource.type for resource in declared}
    for parameter, needed in _resource_parameters(node).items():
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
        if needed and types[name] != needed:
            raise InvalidBlueprint(
                f"{path}: the resource {name!r} is of type {types[name]!r}; node {node.name} needs"
                f" {needed!r}.",
                field=path,
            )


def _resource_parameters(node: NodeInfo) -> dict[str, str]:
    """Return the parameters that name a resource, with the type that each needs."""
    properties = node.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: schema["resource"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and isinstance(schema.get("resource"), str)
    }


def _where(resource: DeclaredResource) -> str:
    return f"$.resources.{resource.name}"
