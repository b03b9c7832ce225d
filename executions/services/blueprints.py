"""Publishing blueprints."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from executions.blueprint.document import content_hash
from executions.blueprint.errors import BadReference, InvalidBlueprint, shown
from executions.blueprint.expressions import (
    MAX_REFERENCES,
    STEP_REFERENCE,
    check_expression,
    check_text,
    expressions,
    texts,
)
from executions.blueprint.plan import PlannedStep, plan
from executions.models import Blueprint, BlueprintVersion
from executions.placement.models import Catalogue
from executions.placement.workers import NoWorkerYet, current_offer
from tenants.scope import platform_scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What a push came to."""

    name: str
    number: int
    is_new: bool


def publish(document: dict[str, Any]) -> Published:
    """Store a checked document as the next version in the tenant entered; the same content again is no new version."""
    check_steps(document, known_nodes())
    digest = content_hash(document)
    with transaction.atomic():
        Blueprint.objects.bulk_create([Blueprint(name=document["name"])], ignore_conflicts=True)
        blueprint = Blueprint.objects.select_for_update().get(name=document["name"])
        existing = blueprint.versions.filter(content_hash=digest).first()
        if existing:
            return Published(name=blueprint.name, number=existing.number, is_new=False)
        newest = blueprint.versions.aggregate(newest=Max("number"))["newest"] or 0
        version = BlueprintVersion.objects.create(
            blueprint=blueprint, number=newest + 1, content=document, content_hash=digest
        )
    return Published(name=blueprint.name, number=version.number, is_new=True)


def known_nodes() -> set[str]:
    """The nodes that a run submitted now can use; empty until a worker has described its own."""
    try:
        with platform_scope():
            offered = Catalogue.objects.get(version=current_offer().catalogue)
    except NoWorkerYet:
        return set()
    return {node["name"] for node in offered.nodes}


def check_steps(document: dict[str, Any], nodes: set[str]) -> None:
    """Refuse unknown nodes, and references to steps that are unknown or come later. Pure."""
    earlier: set[str] = set()
    for step in plan(document).steps:
        where = f"$.steps[{step.position}]"
        if nodes and step.uses not in nodes:
            raise InvalidBlueprint(
                f"{where}.uses: there is no node {step.uses!r}; known are {', '.join(sorted(nodes))}.",
                field=where,
            )
        _check_references(step, f"{where}.with", earlier)
        earlier.add(step.path)


def _check_references(step: PlannedStep, where: str, earlier: set[str]) -> None:
    count = 0
    for path, text in texts(step.parameters, where):
        found = expressions(text)
        count += len(found)
        if count > MAX_REFERENCES:
            raise BadReference(
                f"{where}: a step has at most {MAX_REFERENCES} references.", field=where
            )
        try:
            check_text(text)
            for expression in found:
                check_expression(expression)
        except BadReference as bad:
            raise BadReference(f"{shown(path)}: {bad.detail}", field=shown(path)) from None
        for expression in found:
            _check_order(expression, shown(path), earlier)


def _check_order(expression: str, where: str, earlier: set[str]) -> None:
    for key in STEP_REFERENCE.findall(expression):
        if key not in earlier:
            raise InvalidBlueprint(
                f"{where}: '${{{shown(expression)}}}' needs step {key!r}, which does not come before.",
                field=where,
            )
