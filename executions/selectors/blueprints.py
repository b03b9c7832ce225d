"""Blueprints and their versions, of the tenant entered; `reach`: names of the visible blueprints, None means all."""

from typing import TYPE_CHECKING, TypedDict

from django.db.models import Count, Max, QuerySet

from executions.models import Blueprint, BlueprintVersion
from executions.selectors.executions import Reach
from foundation.errors import NotFound
from tenants.names import BLUEPRINT_NAME

MAX_VERSIONS = 100  # the newest ones that are listed with a blueprint


class VersionFacts(TypedDict):
    """Annotations of a blueprint in a list."""

    newest: int
    versions_total: int
    published_at: object


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    ListedBlueprint = WithAnnotations[Blueprint, VersionFacts]


def blueprints(reach: Reach = None) -> "QuerySet[ListedBlueprint]":
    """Return blueprints annotated for lists, ordered by name."""
    found = Blueprint.objects.all() if reach is None else Blueprint.objects.filter(name__in=reach)
    return found.annotate(
        newest=Max("versions__number"),
        versions_total=Count("versions"),
        published_at=Max("versions__created_at"),
    ).order_by("name")


def blueprint_version(
    name: str, number: int | None = None, reach: Reach = None
) -> BlueprintVersion:
    """Return a published version, the newest if no number is given."""
    found = None
    # PostgreSQL would refuse some texts that are not valid names, such as one with a NUL.
    if BLUEPRINT_NAME.match(name) and (reach is None or name in reach):
        versions = BlueprintVersion.objects.select_related("blueprint").filter(blueprint__name=name)
        if number is not None:
            versions = versions.filter(number=number)
        found = versions.order_by("-number").first()
    if found is None:
        wanted = name if number is None else f"{name}@{number}"
        raise NotFound(f"There is no blueprint {wanted!r}; publish one first.", field="blueprint")
    return found


def versions_of(blueprint: Blueprint) -> QuerySet[BlueprintVersion]:
    """Return the newest versions of a blueprint, without their content."""
    return blueprint.versions.defer("content").order_by("-number")[:MAX_VERSIONS]
