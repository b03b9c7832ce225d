"""The rules for publishing a document beyond its schema, with these nodes. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from executions.blueprints.errors import InvalidBlueprint, shown
from executions.blueprints.plan import DeclaredResource, PlannedStep, plan
from executions.blueprints.schema.inputs import known_inputs
from executions.blueprints.suggestions import instead_of
from executions.blueprints.validation.failures import check_failures, check_guarantee
from executions.blueprints.validation.nodes import NodeInfo
from executions.blueprints.validation.parameters import check_parameters
from executions.blueprints.validation.references import check_references
from executions.blueprints.validation.resources import check_declared, check_uses
from executions.blueprints.work import check_budget


def check_document(document: Mapping[str, Any], nodes: Mapping[str, NodeInfo]) -> None:
    """Refuse a document that cannot run as written; without known nodes all node names are accepted."""
    with check_budget():
        _check_document(document, nodes)


def _check_document(document: Mapping[str, Any], nodes: Mapping[str, NodeInfo]) -> None:
    planned = plan(document)
    check_references(planned, known_inputs(document.get("inputs", {})))
    check_declared(planned.resources)
    for step, written in zip(planned.steps, document["steps"], strict=True):
        check_failures(step, written)
        if nodes:
            _check_nodes(step, nodes, planned.resources)


def _check_nodes(
    step: PlannedStep, nodes: Mapping[str, NodeInfo], declared: Sequence[DeclaredResource]
) -> None:
    where = f"$.steps[{step.position}]"
    node = _node(step.uses, nodes, f"{where}.uses")
    check_parameters(node, step.parameters, f"{where}.with")
    check_uses(node, step.parameters, declared, f"{where}.with")
    check_guarantee(step, node)
    if step.recover:
        recovery = _node(step.recover.uses, nodes, f"{where}.recover.uses")
        check_parameters(recovery, step.recover.parameters, f"{where}.recover.with")
        check_uses(recovery, step.recover.parameters, declared, f"{where}.recover.with")


def _node(name: str, nodes: Mapping[str, NodeInfo], where: str) -> NodeInfo:
    if name not in nodes:
        raise InvalidBlueprint(
            f"{where}: there is no node {shown(repr(name))}; {instead_of(name, nodes)}",
            field=where,
        )
    return nodes[name]
