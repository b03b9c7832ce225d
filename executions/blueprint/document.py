"""A blueprint's document: parsed from YAML or JSON, checked, turned into a plan. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from isolane.protocol import ProtocolError, dump
from orchestrator.core.errors import InvalidInput

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_DEPTH = 50  # PyYAML's time grows with the square of the depth
DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)\Z")
UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DEFAULT_STEP_TIMEOUT = "30s"
KEY = "^[a-z][a-z0-9_-]{0,62}$"

DOCUMENT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Blueprint",
    "type": "object",
    "required": ["name", "steps"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,99}$"},
        "description": {"type": "string"},
        "inputs": {"type": "object", "description": "A JSON Schema for the inputs."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": {
                "type": "object",
                "required": ["key", "uses"],
                "additionalProperties": False,
                "properties": {
                    "key": {"type": "string", "pattern": KEY},
                    "uses": {"type": "string", "minLength": 1, "maxLength": 200},
                    "with": {"type": "object"},
                    "timeout": {"type": "string", "description": "Such as 500ms, 30s, 5m or 1h."},
                },
            },
        },
    },
}
_DOCUMENT_VALIDATOR = Draft202012Validator(DOCUMENT_SCHEMA)
# By default jsonschema fetches a $ref to any URL, file: included; an empty registry fetches nothing.
_FETCHES_NOTHING: Registry[Any] = Registry()


class InvalidBlueprint(InvalidInput):
    """The document cannot be published; the detail says where and why."""

    code = "invalid_blueprint"
    title = "The blueprint does not fit"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStep:
    """One step as the blueprint declares it."""

    position: int
    path: str
    uses: str
    parameters: Mapping[str, Any]
    timeout_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The steps of one blueprint version, in order."""

    name: str
    steps: tuple[PlannedStep, ...]

    def step(self, path: str) -> PlannedStep:
        """The step at a path."""
        return next(step for step in self.steps if step.path == path)

    def after(self, path: str) -> str:
        """The path of the step that follows, or nothing at the end."""
        position = self.step(path).position + 1
        return self.steps[position].path if position < len(self.steps) else ""

    def from_path(self, path: str) -> tuple[PlannedStep, ...]:
        """This step and all that follow."""
        return self.steps[self.step(path).position :]


def parse(text: str) -> dict[str, Any]:
    """Read YAML (or JSON, which is YAML) into a checked document."""
    if len(text.encode()) > MAX_DOCUMENT_BYTES:
        raise InvalidBlueprint(f"The document is larger than {MAX_DOCUMENT_BYTES // 1024} KiB.")
    try:
        _refuse_bombs(text)
        document = _as_json(yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidBlueprint(f"Line {line} is not YAML: {error.problem}.") from None
    except yaml.YAMLError:
        raise InvalidBlueprint("The document is not YAML.") from None
    return check(document)


def check(document: Any) -> dict[str, Any]:
    """Refuse a document that does not fit the schema, with the path of what does not."""
    if error := best_match(_DOCUMENT_VALIDATOR.iter_errors(document)):
        raise InvalidBlueprint(f"{error.json_path}: {error.message}", field=error.json_path)
    checked: dict[str, Any] = document
    _check_inputs_schema(checked.get("inputs", {}))
    keys = [step["key"] for step in checked["steps"]]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidBlueprint(
                f"$.steps: the key {key!r} is used twice; keys are unique.", field="$.steps"
            )
    plan(checked)
    return checked


def plan(document: Mapping[str, Any]) -> Plan:
    """The steps that a document asks for."""
    steps = tuple(
        PlannedStep(
            position=position,
            path=step["key"],
            uses=step["uses"],
            parameters=step.get("with", {}),
            timeout_s=_seconds(
                step.get("timeout", DEFAULT_STEP_TIMEOUT), f"$.steps[{position}].timeout"
            ),
        )
        for position, step in enumerate(document["steps"])
    )
    return Plan(name=document["name"], steps=steps)


def check_inputs(document: Mapping[str, Any], inputs: Any) -> None:
    """Refuse inputs that do not fit the blueprint's schema."""
    schema = {"type": "object", **document.get("inputs", {})}
    validator = Draft202012Validator(schema, registry=_FETCHES_NOTHING)
    try:
        dump(inputs)
        error = best_match(validator.iter_errors(inputs))
    except ProtocolError as unstorable:
        raise InvalidInput(f"inputs: {unstorable}.", field="inputs") from None
    except (Unresolvable, RecursionError):
        raise InvalidInput(
            "inputs: the blueprint's schema has a $ref that leads nowhere; it may point into itself only.",
            field="inputs",
        ) from None
    if error:
        where = "inputs" + error.json_path.removeprefix("$")
        raise InvalidInput(f"{where}: {error.message}", field=where)


def content_hash(document: Mapping[str, Any]) -> str:
    """The same content has the same hash, whatever the order of its keys."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _refuse_bombs(text: str) -> None:
    """Small texts that would take much time or memory: aliases multiply values, depth the work."""
    depth = 0
    for event in yaml.parse(text):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidBlueprint("The document uses YAML aliases (*name); write the value out.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InvalidBlueprint(f"The document is nested deeper than {MAX_DEPTH} levels.")


def _as_json(value: Any) -> Any:
    """YAML knows dates, infinite numbers and keys that are no text; what is stored is JSON."""
    try:
        return json.loads(dump(value))
    except ProtocolError as error:
        raise InvalidBlueprint(f"The document holds what JSON does not ({error}).") from None


def _check_inputs_schema(schema: Any) -> None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidBlueprint(
            f"$.inputs is not a JSON Schema: {error.message}", field="$.inputs"
        ) from None


def _seconds(text: str, where: str) -> float:
    match = DURATION.match(text)
    if not match or not (seconds := float(match[1]) * UNIT_SECONDS[match[2]]):
        raise InvalidBlueprint(
            f"{where} is {text!r}; write a duration such as 500ms, 30s, 5m or 1h.", field=where
        )
    return seconds
