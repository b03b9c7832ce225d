"""Queries for definitions and the names of secrets, in the tenant entered."""

import json
from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from foundation.errors import NotFound
from resources.definition_ref import DefinitionRef
from resources.models import ResourceDefinition, Secret
from resources.services.names import is_name
from tenants.statement import fetch_row

# Every run with resources executes it: prepared, and one row. Sealed values are ASCII.
DEFINITIONS = """
SELECT jsonb_object_agg(d.name, jsonb_build_object(
    'type', d.type, 'config', d.config, 'secrets', d.secrets, 'scope', d.scope, 'sealed', coalesce((
        SELECT jsonb_object_agg(s.name, encode(s.sealed, 'escape'))
        FROM jsonb_each_text(d.secrets) reference JOIN resources_secret s ON s.name = reference.value), '{}')))
FROM resources_resourcedefinition d WHERE d.name = ANY(%(names)s::text[])"""


def definitions(names: Collection[str]) -> dict[str, DefinitionRef]:
    """Return those of the named definitions that exist, by name; one query."""
    row = fetch_row(DEFINITIONS, {"names": [name for name in names if is_name(name)]})
    found: dict[str, dict[str, Any]] = json.loads(row[0]) if row and row[0] else {}
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
