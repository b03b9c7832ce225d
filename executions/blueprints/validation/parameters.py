"""Checks of a step's parameters against its node, as far as they are known before a run. Pure.

A reference that stands alone may become any value; text around a reference is text in any case.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import UnknownType, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from executions.blueprints.errors import BlueprintTooExpensive, InvalidBlueprint, shown
from executions.blueprints.expressions.resolution import REFERENCE
from executions.blueprints.paths import child, path_of
from executions.blueprints.schema.keywords import BoundedValidator, Keyword, bounded
from executions.blueprints.suggestions import instead_of
from executions.blueprints.validation.nodes import NodeInfo
from executions.blueprints.work import TooMuchWork

# The result of these may change with any part of the value.
_OF_THE_WHOLE = frozenset(
    {"const", "contains", "enum", "if", "maxLength", "minLength", "not", "oneOf", "pattern"}
    | {"format", "uniqueItems"}
)
_FETCHES_NOTHING: Registry[Any] = Registry()


class _Anything(str):
    """A reference that stands alone."""

    __slots__ = ()


class _SomeText(str):
    """Text with references in it."""

    __slots__ = ()


def check_parameters(node: NodeInfo, parameters: Mapping[str, Any], where: str) -> None:
    """Refuse parameters that the node does not know, requires and lacks, or cannot accept."""
    _check_names(node, parameters, where)
    if error := _first_error(node, _marked(parameters), where):
        path = path_of(error.absolute_path, where)
        raise InvalidBlueprint(
            f"{path}: {shown(error.message)}; required by node {node.name}.", field=path
        )


def _check_names(node: NodeInfo, parameters: Mapping[str, Any], where: str) -> None:
    known = node.parameters.get("properties")
    if not isinstance(known, dict):
        return
    closed = node.parameters.get("additionalProperties") is False
    if closed and (unknown := sorted(set(parameters) - set(known))):
        path = child(where, unknown[0])
        raise InvalidBlueprint(
            f"{path}: node {node.name} has no parameter {shown(repr(unknown[0]))};"
            f" {instead_of(unknown[0], known)}",
            field=path,
        )
    if missing := sorted(set(node.parameters.get("required", ())) - set(parameters)):
        raise InvalidBlueprint(
            f"{where}: node {node.name} needs the parameter {missing[0]!r}.", field=where
        )


def _first_error(
    node: NodeInfo, parameters: Mapping[str, Any], where: str
) -> ValidationError | None:
    schema = _without_dialects(node.parameters)
    try:
        with bounded():
            validator = _OpenValidator(schema, registry=_FETCHES_NOTHING)
            found: ValidationError | None = best_match(validator.iter_errors(parameters))
    except TooMuchWork:
        raise BlueprintTooExpensive(
            f"{where}: checking the parameters of node {node.name}, with those before it, takes too much work;"
            " write fewer or smaller ones.",
            field=where,
        ) from None
    except (
        *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
        *(Unresolvable, UnknownType),
    ):
        raise _unchecked(node, where, "the schema of its parameters is not valid") from None
    return found


def _without_dialects(schema: Any) -> Any:
    """Remove $schema everywhere: there jsonschema would switch to a validator without these bounds."""
    if isinstance(schema, Mapping):
        return {k: _without_dialects(inner) for k, inner in schema.items() if k != "$schema"}
    return [_without_dialects(inner) for inner in schema] if isinstance(schema, list) else schema


def _unchecked(node: NodeInfo, where: str, reason: str) -> InvalidBlueprint:
    return InvalidBlueprint(f"{where}: node {node.name}: {reason}.", field=where)


def _marked(value: Any) -> Any:
    """Return the same value with its references marked."""
    if isinstance(value, str):
        if REFERENCE.fullmatch(value):
            return _Anything(value)
        return _SomeText(value) if REFERENCE.search(value) else value
    if isinstance(value, Mapping):
        return {key: _marked(inner) for key, inner in value.items()}
    return [_marked(inner) for inner in value] if isinstance(value, list) else value


def _is_open(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_open, value.values()))
    if isinstance(value, list):
        return any(map(_is_open, value))
    return isinstance(value, _Anything | _SomeText)


def _open(name: str, keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, _Anything) or (name in _OF_THE_WHOLE and _is_open(instance)):
            return
        yield from keyword(validator, value, instance, schema) or ()

    return check


_OpenValidator: Any = extend(  # type: ignore[no-untyped-call]
    BoundedValidator,
    {name: _open(name, keyword) for name, keyword in BoundedValidator.VALIDATORS.items()},
)
