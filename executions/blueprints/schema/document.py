"""Validation of a document against the schema of blueprints. Pure."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import ValidationError, best_match

from executions.blueprints import durations
from executions.blueprints.errors import BlueprintTooExpensive, InvalidBlueprint, shown
from executions.blueprints.paths import child, path_of
from executions.blueprints.plan import plan
from executions.blueprints.schema.inputs import check_inputs_schema
from executions.blueprints.schema.keywords import BoundedValidator, bounded
from executions.blueprints.schema.published import DOCUMENT_SCHEMA
from executions.blueprints.suggestions import instead_of
from executions.blueprints.work import TooMuchWork, check_budget

# Python's re would let $ match before a newline at the end, too; RE2 does not.
_DOCUMENT_VALIDATOR = BoundedValidator(DOCUMENT_SCHEMA)


_SIZES = {"maxItems": "items", "maxLength": "characters", "maxProperties": "fields"}


def check(document: Any) -> dict[str, Any]:
    """Refuse a document that does not fit the schema, with the path of the invalid part."""
    with check_budget():
        if error := _first_error(document):
            raise _refusal(error)
        checked: dict[str, Any] = document
        check_inputs_schema(checked.get("inputs", {}))
    _check_keys(checked["steps"])
    plan(checked)  # reads the durations
    return checked


def _first_error(document: Any) -> ValidationError | None:
    try:
        with bounded():
            found: ValidationError | None = best_match(_DOCUMENT_VALIDATOR.iter_errors(document))
    except TooMuchWork:
        raise BlueprintTooExpensive(
            "$: checking the document takes too much work; make several smaller blueprints of it.",
            field="$",
        ) from None
    return found


def content_hash(document: Mapping[str, Any]) -> str:
    """Return a hash that does not depend on the order of keys."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _check_keys(steps: list[dict[str, Any]]) -> None:
    first: dict[str, int] = {}
    for position, step in enumerate(steps):
        before = first.setdefault(step["key"], position)
        if before != position:
            where = f"$.steps[{position}].key"
            raise InvalidBlueprint(
                f"{where}: the key {step['key']!r} is also that of $.steps[{before}]; keys are unique.",
                field=where,
            )


def _refusal(error: Any) -> InvalidBlueprint:
    where = path_of(error.absolute_path)
    if error.validator == "additionalProperties":
        return _unknown_field(error, where)
    return InvalidBlueprint(f"{where}: {_reason(error)}", field=where)


def _unknown_field(error: Any, where: str) -> InvalidBlueprint:
    known = error.schema["properties"]
    unknown = sorted(set(error.instance) - set(known))[0]
    path = child(where, unknown)
    return InvalidBlueprint(
        f"{path}: there is no field {shown(repr(unknown))} here; {instead_of(unknown, known)}",
        field=path,
    )


def _with_unit(written: Any) -> str:
    if isinstance(written, int | float) and not isinstance(written, bool):
        return shown(f"{written}s")
    return "one such as 30s or 5m"


def _reason(error: Any) -> str:
    if error.validator == "type" and error.schema.get("pattern") == durations.PATTERN:
        return (
            f"{shown(repr(error.instance))} is not a duration; write {_with_unit(error.instance)}."
        )
    if error.validator == "pattern":
        # A pattern helps few people; its description explains what would fit.
        return f"{shown(repr(error.instance))} does not fit: {error.schema['description']}"
    if error.validator == "enum" and isinstance(error.instance, str):
        wanted = error.schema["enum"]
        return f"{shown(repr(error.instance))} is not one of {', '.join(wanted)}."
    if unit := _SIZES.get(error.validator):
        return f"it has {len(error.instance)} {unit}; at most {error.validator_value} are allowed."
    return shown(error.message)
