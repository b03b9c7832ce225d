"""Whether something is a JSON Schema, found out within bounds: the meta-schema of draft 2020-12, checked as all else is.

Pure.
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from executions.blueprint.keywords import BoundedValidator, bounded

_ROOT: str = Draft202012Validator.META_SCHEMA["$id"]
_PARTS = [
    f"{_ROOT.rpartition('/')[0]}/{part['$ref']}"
    for part in Draft202012Validator.META_SCHEMA["allOf"]
]


def _without_dialect(uri: str) -> dict[str, Any]:
    """At a $schema, jsonschema would change to a validator without our bounds."""
    return {name: value for name, value in REGISTRY.contents(uri).items() if name != "$schema"}


_META = {uri: _without_dialect(uri) for uri in (_ROOT, *_PARTS)}
_REGISTRY: Registry[Any] = Registry().with_resources(
    (uri, DRAFT202012.create_resource(content)) for uri, content in _META.items()
)
# No formats: that of a pattern would be Python's, and RE2 is asked for each.
_VALIDATOR = BoundedValidator(_META[_ROOT], registry=_REGISTRY)


def schema_error(schema: Mapping[str, Any]) -> ValidationError | None:
    """What makes it no schema; none if it is one."""
    with bounded():
        error: ValidationError | None = next(_VALIDATOR.iter_errors(schema), None)
    return error
