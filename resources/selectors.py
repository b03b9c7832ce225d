"""Reading definitions and the names of secrets, in the tenant entered."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet

from foundation.errors import NotFound
from isolane.protocol import ResourceScope
from resources.models import ResourceDefinition, Secret
from resources.services.names import is_name
from tenants.statement import Statement


class DefinitionsRow(NamedTuple):
    """Definitions by name, as JSON; None if there are none."""

    definitions: str | None


# Asked by every run with resources: prepared, and one row. What is sealed is ASCII.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionRef:
    """A definition as a plain value, for the worker."""

    name: str
    type: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]  # references, not values
    sealed: Mapping[str, str]  # the stored ones that they name, as they are stored
    scope: ResourceScope


def definitions(names: Collection[str]) -> dict[str, DefinitionRef]:
    """Those of the named definitions that exist, by name; one query."""
    row = DEFINITIONS.fetch({"names": [name for name in names if is_name(name)]})
    found: dict[str, dict[str, Any]] = {}
    if row and row.definitions:
        found = json.loads(row.definitions)
    return {name: DefinitionRef(name=name, **said) for name, said in found.items()}


def all_definitions() -> QuerySet[ResourceDefinition]:
    """All of them, for lists."""
    return ResourceDefinition.objects.order_by("name")


def definition(name: str) -> ResourceDefinition:
    """One by its name."""
    found = ResourceDefinition.objects.filter(name=name).first() if is_name(name) else None
    if found is None:
        raise no_definition(name)
    return found


def all_secrets() -> QuerySet[Secret]:
    """All of them, for lists; without what is sealed."""
    return Secret.objects.defer("sealed").order_by("name")


def no_definition(name: str) -> NotFound:
    """What is said of a definition that is not there, or is another tenant's."""
    return NotFound(f"There is no resource {name[:80]!r}.", field="name")


def no_secret(name: str) -> NotFound:
    """What is said of a secret that is not there, or is another tenant's."""
    return NotFound(f"There is no secret {name[:80]!r}.", field="name")
