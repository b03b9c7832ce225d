"""Publishing blueprints, and reading what was published, in the tenant entered."""

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
from executions.submission.bounded_work import bounded_work
from foundation.errors import NotFound
from resources.selectors import definitions
from tenants.scope import platform_scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What a push came to."""

    name: str
    number: int
    is_new: bool


def publish(document: dict[str, Any]) -> Published:
    """Check and store a document that was read; the same content again is no new version."""
    nodes = catalogue_nodes()
    with bounded_work():
        check_document(document, nodes)
        declared = plan(document).resources
    _check_resources(declared)
    return store(document)


def validate_text(text: str) -> dict[str, Any]:
    """Read and check a text as for publishing; refusals say path and line."""
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
    """The nodes that a run submitted now can use; empty until a worker has described its own."""
    try:
        with platform_scope():
            offered = Catalogue.objects.get(version=current_offer().catalogue)
    except NoWorkerYet:
        return {}
    return nodes_of(offered.nodes)


def version(name: str, number: int | None = None) -> BlueprintVersion:
    """A published version, the newest unless said otherwise."""
    versions = BlueprintVersion.objects.select_related("blueprint").filter(blueprint__name=name)
    if number is not None:
        versions = versions.filter(number=number)
    found = versions.order_by("-number").first()
    if found is None:
        wanted = name if number is None else f"{name}@{number}"
        raise NotFound(f"There is no blueprint {wanted!r}; publish one first.", field="blueprint")
    return found


def diff(name: str, old: int, new: int) -> str:
    """What changed from one version to another, as a unified diff of YAML; empty where nothing did."""
    before, after = version(name, old), version(name, new)
    with bounded_work():
        return unified_diff(before.content, after.content, (str(before), str(after)))


def source_of(version: BlueprintVersion) -> str:
    """A version as YAML, always the same for the same content."""
    with bounded_work():
        return as_yaml(version.content)


def store(document: dict[str, Any]) -> Published:
    """Store a document that `validate_text` has returned."""
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
