"""A run's inputs, and the JSON Schema of a blueprint for them. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import UnknownType, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from executions.blueprints.errors import SHOWN, BlueprintTooExpensive, InvalidBlueprint, shown
from executions.blueprints.paths import child, item, path_of
from executions.blueprints.plan import sensitive_inputs
from executions.blueprints.schema.keywords import (
    MAX_PATTERN,
    BoundedValidator,
    PatternError,
    bounded,
    compiled,
)
from executions.blueprints.schema.metaschema import schema_error
from executions.blueprints.schema.subschemas import check_refs
from executions.blueprints.work import TooMuchWork
from foundation.errors import InvalidInput, TooMuchToCheck
from isolane.protocol import ProtocolError, dump

MAX_INPUTS_BYTES = 1024 * 1024  # as JSON
MAX_PATTERNS = 100  # in one schema; compiling one may take 20 ms
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# The first hold names, not keywords, and the second plain values.
_NAMES = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
_VALUES = frozenset({"const", "default", "dependentRequired", "enum", "examples"})
_INSTEAD = {
    "unevaluatedItems": "items",
    "unevaluatedProperties": "additionalProperties",
    "$dynamicRef": "$ref",
}
# The messages of these quote names of inputs, and no values.
_OF_NAMES = frozenset({"additionalProperties", "dependentRequired", "required"})
# By default jsonschema fetches a $ref from any URL, file: included; an empty registry fetches nothing.
_FETCHES_NOTHING: Registry[Any] = Registry()


class WantsText(InvalidInput):
    """A number, a boolean or null was sent where text is expected; easily done with typed inputs."""


def check_inputs(document: Mapping[str, Any], inputs: Any) -> None:
    """Refuse inputs that do not fit the blueprint's schema."""
    try:
        size = len(dump(inputs))
    except ProtocolError as unstorable:
        raise _refused(f"{unstorable}.") from None
    if size > MAX_INPUTS_BYTES:
        raise _refused(f"{size} bytes of JSON are over the limit of {MAX_INPUTS_BYTES}.")
    schema = document.get("inputs", {})
    if error := _first_error({"type": "object", **schema}, inputs):
        raise _refusal(error, sensitive_inputs(schema))


def known_inputs(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of all inputs; None if the schema allows others."""
    if schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return None
    return frozenset(schema.get("properties", {}))


def check_inputs_schema(schema: Mapping[str, Any]) -> None:
    """Refuse an invalid JSON Schema, or one that cannot be checked within bounds."""
    _refuse_dialects(schema)
    check_refs(schema, "$.inputs")
    if error := _schema_error(schema):
        where = path_of(error.absolute_path, "$.inputs")
        raise InvalidBlueprint(
            f"{where} does not fit JSON Schema: {shown(error.message)}", field=where
        )
    _check_marks(schema)
    count = 0
    for where, keyword, value in _keywords(schema, "$.inputs"):
        if keyword in _INSTEAD:
            raise _unfit(where, f"this keyword is not supported; use {_INSTEAD[keyword]}")
        for pattern in _patterns(keyword, value):
            count += 1
            if count > MAX_PATTERNS:
                raise _unfit("$.inputs", f"it has more than {MAX_PATTERNS} patterns")
            _check_pattern(where, pattern)


def _schema_error(schema: Mapping[str, Any]) -> ValidationError | None:
    try:
        return schema_error(schema)
    except TooMuchWork:
        raise BlueprintTooExpensive(
            "$.inputs: it takes too much work to check this schema; make it smaller.",
            field="$.inputs",
        ) from None


def _check_marks(schema: Mapping[str, Any]) -> None:
    """Refuse `sensitive` below the top level's properties: an input is sensitive as a whole."""
    unmarked = {}
    for name, described in schema.get("properties", {}).items():
        if not isinstance(described, dict):
            continue
        where = path_of(["properties", name, "sensitive"], "$.inputs")
        if not isinstance(described.get("sensitive", False), bool):
            raise _unfit(where, "write true or false")
        unmarked[name] = {key: value for key, value in described.items() if key != "sensitive"}
    for where, keyword, _ in _keywords({**schema, "properties": unmarked}, "$.inputs"):
        if keyword == "sensitive":
            raise _unfit(
                where, "only a property at the top of inputs can be marked; mark all of it"
            )


def _first_error(schema: dict[str, Any], inputs: Any) -> ValidationError | None:
    schema.pop("$schema", None)  # with it, jsonschema would use its own validator
    try:
        with bounded():
            validator = BoundedValidator(schema, registry=_FETCHES_NOTHING)
            found: ValidationError | None = best_match(validator.iter_errors(inputs))
    except TooMuchWork:
        raise TooMuchToCheck(
            "inputs: checking them against the blueprint's schema takes too much work; send less, or publish a"
            " schema with fewer references, alternatives and long patterns.",
            field="inputs",
        ) from None
    except RecursionError:
        raise _refused("they are nested too deeply for the blueprint's schema.") from None
    except (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
        *(Unresolvable, UnknownType),
    ):
        # Such as a number that is too long for a keyword of the schema.
        raise _refused("they cannot be checked against the blueprint's schema.") from None
    return found


def _refusal(error: ValidationError, sensitive: frozenset[str]) -> InvalidInput:
    """Return the error with the expected value; no part of a sensitive input is quoted, not even a name inside it."""
    path = list(error.absolute_path)
    where, reason = "inputs" + error.json_path.removeprefix("$"), error.message
    if path and path[0] in sensitive:
        where, reason = path_of(path[:1], "inputs"), f"it does not fit: {_asked(error)}"
    elif sensitive and not path and error.validator not in _OF_NAMES:
        reason = f"they do not fit: {_asked(error)}"
    kind = WantsText if _wants_text(error) else InvalidInput
    return kind(f"{shown(where)}: {shown(reason)}", field=shown(where))


def _asked(error: ValidationError) -> str:
    asked = json.dumps({error.validator: error.validator_value}, ensure_ascii=False)
    return f"its schema asks for {asked}" if len(asked) <= SHOWN // 2 else f"see {error.validator}"


def _wants_text(error: ValidationError) -> bool:
    typed = len(error.absolute_path) == 1 and not isinstance(error.instance, str | list | dict)
    return typed and error.validator == "type" and error.validator_value == "string"


def _refused(reason: str, where: str = "inputs") -> InvalidInput:
    return InvalidInput(f"{shown(where)}: {reason}", field=shown(where))


def _refuse_dialects(schema: Mapping[str, Any]) -> None:
    """Refuse other dialects: at a $schema, jsonschema would switch to a validator without these bounds."""
    if schema.get("$schema", DIALECT) != DIALECT:
        raise _unfit("$.inputs.$schema", f"only {DIALECT} is known")
    waiting: list[Any] = list(schema.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "$schema" in value:
                raise _unfit("$.inputs", "$schema is allowed at the top only")
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _keywords(schema: Any, where: str) -> Iterator[tuple[str, str, Any]]:
    """Yield every keyword of a schema and of those inside it, with its path."""
    if isinstance(schema, list):
        for index, inner in enumerate(schema):
            yield from _keywords(inner, item(where, index))
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        path = child(where, keyword)
        yield path, keyword, value
        if keyword in _NAMES and isinstance(value, dict):
            for name, inner in value.items():
                yield from _keywords(inner, child(path, name))
        elif keyword not in _VALUES:
            yield from _keywords(value, path)


def _patterns(keyword: str, value: Any) -> list[Any]:
    if keyword == "patternProperties" and isinstance(value, dict):
        return list(value)
    return [value] if keyword == "pattern" else []


def _check_pattern(where: str, pattern: Any) -> None:
    try:
        size = compiled(pattern).programsize
    except PatternError as error:
        raise _unfit(
            where, f"{shown(repr(pattern))} is not a pattern of RE2: {shown(str(error))}"
        ) from None
    if size > MAX_PATTERN:
        raise BlueprintTooExpensive(
            f"{shown(where)}: {shown(repr(pattern))} compiles to {size} instructions, over {MAX_PATTERN};"
            " repeat less, or bound the length by maxLength.",
            field=shown(where),
        )


def _unfit(where: str, reason: str) -> InvalidBlueprint:
    return InvalidBlueprint(f"{shown(where)}: {reason}.", field=shown(where))
