"""Check, publish and compare blueprints, in the tenant entered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from executions.blueprints.plan import DeclaredResource, plan
from executions.blueprints.reading import read
from executions.blueprints.schema.document import content_hash
from executions.blueprints.validation.nodes import NodeInfo, nodes_of
from executions.blueprints.validation.resources import check_defined
from executions.blueprints.validation.rules import check_document
from executions.blueprints.writing import as_yaml, unified_diff
from executions.models import Blueprint, BlueprintVersion
from executions.placement.models import Catalogue
from executions.placement.registry import NoWorkerYet, current_offer
from executions.selectors.blueprints import blueprint_version
from executions.submission.bounded_work import bounded_work
from resources.selectors import definitions
from tenants.scope import platform_scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """The version that a document was published as."""

    name: str
    number: int
    is_new: bool  # False if the same content was published before


def publish(document: dict[str, Any]) -> Published:
    """Check a parsed document and store it; unchanged content does not become a new version."""
    nodes = catalogue_nodes()
    with bounded_work():
        check_document(document, nodes)
        declared = plan(document).resources
    _check_resources(declared)
    return store(document)


def validate_text(text: str) -> dict[str, Any]:
    """Parse and check a text as for publishing; errors name path and line."""
    nodes = catalogue_nodes()
    with bounded_work():
        source = read(text)
        with source.located():
            check_document(source.document, nodes)
        declared = plan(source.document).resources
    with source.located():
        _check_resources(declared)
    return source.document


def _check_resources(declared: Sequence[DeclaredResource]) -> None:
    if declared:
        check_defined(declared, definitions({resource.definition for resource in declared}))


def catalogue_nodes() -> dict[str, NodeInfo]:
    """Return the nodes that a run submitted now can use; empty until a worker has described its nodes."""
    try:
        with platform_scope():
            offered = Catalogue.objects.get(version=current_offer().catalogue)
    except NoWorkerYet:
        return {}
    return nodes_of(offered.nodes)


def diff(name: str, old: int, new: int) -> str:
    """Return a unified diff of two versions as YAML; empty if nothing changed."""
    before, after = blueprint_version(name, old), blueprint_version(name, new)
    with bounded_work():
        return unified_diff(before.content, after.content, (str(before), str(after)))


def source_of(version: BlueprintVersion) -> str:
    """Return a version as YAML; the same content always gives the same text."""
    with bounded_work():
        return as_yaml(version.content)


def store(document: dict[str, Any]) -> Published:
    """Store a document that was checked, as the next version unless its content is stored already."""
    digest = content_hash(document)
    with transaction.atomic():
        Blueprint.objects.bulk_create([Blueprint(name=document["name"])], ignore_conflicts=True)
        blueprint = Blueprint.objects.select_for_update().get(name=document["name"])
        existing = blueprint.versions.filter(content_hash=digest).first()
        if existing:
            return Published(name=blueprint.name, number=existing.number, is_new=False)
        newest = blueprint.versions.aggregate(newest=Max("number"))["newest"] or 0
        stored = BlueprintVersion.objects.create(
            blueprint=blueprint, number=newest + 1, content=document, content_hash=digest
        )
    return Published(name=blueprint.name, number=stored.number, is_new=True)
