"""Publishing blueprints."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from executions.blueprint.document import InvalidBlueprint, content_hash, plan
from executions.blueprint.expressions import STEP_REFERENCE, check_expression, references
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
        for expression in references(step.parameters):
            check_expression(expression)
            for key in STEP_REFERENCE.findall(expression):
                if key not in earlier:
                    raise InvalidBlueprint(
                        f"{where}.with: '${{{expression}}}' needs step {key!r}, which does not come before.",
                        field=where,
                    )
        earlier.add(step.path)
