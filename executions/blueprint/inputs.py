"""A run's inputs, and the JSON Schema that a blueprint has for them. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from executions.blueprint.errors import InvalidBlueprint, shown
from executions.blueprint.keywords import (
    UNSUPPORTED,
    BoundedValidator,
    PatternError,
    bounded,
    compiled,
)
from executions.blueprint.paths import child, item, path_of
from executions.blueprint.work import TooMuchWork
from isolane.protocol import ProtocolError, dump
from orchestrator.core.errors import InvalidInput

MAX_INPUTS_BYTES = 1024 * 1024  # as JSON
MAX_PATTERNS = 100  # in one schema; compiling one may take 20 ms
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Below these stand names, not keywords; and below those plain values.
_NAMES = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
_VALUES = frozenset({"const", "default", "dependentRequired", "enum", "examples"})
# By default jsonschema fetches a $ref to any URL, file: included; an empty registry fetches nothing.
_FETCHES_NOTHING: Registry[Any] = Registry()


def check_inputs(document: Mapping[str, Any], inputs: Any) -> None:
    """Refuse inputs that do not fit the blueprint's schema."""
    try:
        size = len(dump(inputs))
    except ProtocolError as unstorable:
        raise _refused(f"{unstorable}.") from None
    if size > MAX_INPUTS_BYTES:
        raise _refused(f"{size} bytes of JSON are over the limit of {MAX_INPUTS_BYTES}.")
    if error := _first_error({"type": "object", **document.get("inputs", {})}, inputs):
        raise _refused(shown(error.message), "inputs" + error.json_path.removeprefix("$"))


def check_inputs_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema, or one that cannot be checked within bounds."""
    _refuse_dialects(schema)
    try:
        # No formats: that of a pattern would be Python's, and RE2 is asked below.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        raise InvalidBlueprint(
            f"$.inputs is not a JSON Schema: {shown(error.message)}", field="$.inputs"
        ) from None
    _check_marks(schema)
    count = 0
    for where, keyword, value in _keywords(schema, "$.inputs"):
        if keyword in UNSUPPORTED:
            raise _unfit(where, "this keyword is not supported; additionalProperties and items are")
        for pattern in _patterns(keyword, value):
            count += 1
            if count > MAX_PATTERNS:
                raise _unfit("$.inputs", f"it has more than {MAX_PATTERNS} patterns")
            _check_pattern(where, pattern)


def _check_marks(schema: Mapping[str, Any]) -> None:
    """An input is sensitive as a whole, so `sensitive` may stand at the top's properties only."""
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
                where, "only a property at the top of inputs can be marked; mark the whole of it"
            )


def _first_error(schema: dict[str, Any], inputs: Any) -> ValidationError | None:
    schema.pop("$schema", None)  # where it stands, jsonschema changes to its own validator
    try:
        with bounded(schema, inputs):
            validator = BoundedValidator(schema, registry=_FETCHES_NOTHING)
            found: ValidationError | None = best_match(validator.iter_errors(inputs))
    except TooMuchWork:
        raise _refused(
            "checking them against the blueprint's schema takes too much work; simplify one of them."
        ) from None
    except (Unresolvable, RecursionError):
        raise _refused(
            "the blueprint's schema has a $ref that leads nowhere; it may point into itself only."
        ) from None
    except (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
        UnknownType,
    ):
        # A $ref may point at what is no schema, and there nothing was checked when publishing.
        raise _refused("the blueprint's schema has a $ref to what is no schema.") from None
    return found


def _refused(reason: str, where: str = "inputs") -> InvalidInput:
    return InvalidInput(f"{shown(where)}: {reason}", field=shown(where))


def _refuse_dialects(schema: Mapping[str, Any]) -> None:
    """At a $schema, jsonschema would change to a validator without our bounds, wherever it stands."""
    if schema.get("$schema", DIALECT) != DIALECT:
        raise _unfit("$.inputs.$schema", f"only {DIALECT} is known")
    waiting: list[Any] = list(schema.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "$schema" in value:
                raise _unfit("$.inputs", "$schema may stand at the top only")
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _keywords(schema: Any, where: str) -> Iterator[tuple[str, str, Any]]:
    """Every keyword of a schema and of those inside it, with its path."""
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
        compiled(pattern)
    except PatternError as error:
        raise _unfit(
            where, f"{shown(repr(pattern))} is no pattern of RE2: {shown(str(error))}"
        ) from None


def _unfit(where: str, reason: str) -> InvalidBlueprint:
    return InvalidBlueprint(f"{shown(where)}: {reason}.", field=shown(where))
