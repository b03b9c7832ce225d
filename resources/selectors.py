"""Queries for definitions and the names of secrets, in the tenant entered."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from django.db.models import QuerySet

from foundation.errors import NotFound
from resources.definition_ref import DefinitionRef
from resources.models import ResourceDefinition, Secret
from resources.services.names import is_name
from tenants.statement import Statement


class DefinitionsRow(NamedTuple):
    """Definitions by name, as JSON; None if there are none."""

    definitions: str | None


# Every run with resources executes it: prepared, and one row. Sealed values are ASCII.
DEFINITIONS = Statement(
    "definitions",
    """
SELECT jsonb_object_agg(d.name, jsonb_build_object(
    'type', d.type, 'config', d.config, 'secrets', d.secrets, 'scope', d.scope, 'sealed', coalesce((
        SELECT jsonb_object_agg(s.name, encode(s.sealed, 'escape'))
        FROM jsonb_each_text(d.secrets) reference JOIN resources_secret s ON s.name = reference.value), '{}')))
       AS definitions
FROM resources_resourcedefinition d WHERE d.name = ANY(%(names)s::text[])""",
    parameters=("names",),
    row=DefinitionsRow,
)


def definitions(names: Collection[str]) -> dict[str, DefinitionRef]:
    """Return those of the named definitions that exist, by name; one query."""
    row = DEFINITIONS.fetch({"names": [name for name in names if is_name(name)]})
    found: dict[str, dict[str, Any]] = {}
    if row and row.definitions:
        found = json.loads(row.definitions)
    return {name: DefinitionRef(name=name, **fields) for name, fields in found.items()}


def all_definitions() -> QuerySet[ResourceDefinition]:
    """Return all definitions, for lists."""
    return ResourceDefinition.objects.order_by("name")


def definition(name: str) -> ResourceDefinition:
    """Return the definition of this name, or raise NotFound."""
    found = ResourceDefinition.objects.filter(name=name).first() if is_name(name) else None
    if found is None:
        raise no_definition(name)
    return found


def all_secrets() -> QuerySet[Secret]:
    """Return all secrets, for lists; without their sealed values."""
    return Secret.objects.defer("sealed").order_by("name")


def no_definition(name: str) -> NotFound:
    """Return the error for a definition that does not exist, or is another tenant's."""
    return NotFound(f"There is no resource {name[:80]!r}.", field="name")


def no_secret(name: str) -> NotFound:
    """Return the error for a secret that does not exist, or is another tenant's."""
    return NotFound(f"There is no secret {name[:80]!r}.", field="name")
