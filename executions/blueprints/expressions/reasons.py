"""Reasons why an expression could not be evaluated, with types and without values. Pure."""

from jmespath.exceptions import ArityError, JMESPathTypeError, VariadictArityError

from executions.blueprints.errors import shown

_OF_MANY = "array-"  # a prefix to the type of its items
# JMESPath has its own names of types, but uses Python's for items of an array.
_INSIDE = {
    "bool": "boolean",
    "dict": "object",
    "float": "number",
    "int": "number",
    "list": "array",
    "NoneType": "null",
    "str": "string",
}


def reason_of(error: Exception) -> str:
    """Return the reason; empty if it cannot be given without values, which the libraries' own messages quote."""
    match error:
        case JMESPathTypeError():
            wanted = _either([_kind(each) for each in error.expected_types])
            return shown(f"{error.function_name}() expects {wanted}, got {_got(error.actual_type)}")
        case ArityError():
            least = "at least " if isinstance(error, VariadictArityError) else ""
            few = f"{error.expected_arity} argument{'' if error.expected_arity == 1 else 's'}"
            return shown(f"{error.function_name}() takes {least}{few}, got {error.actual_arity}")
        case RecursionError() | MemoryError():
            return "it is nested too deeply, or too large"
        case TypeError():
            return "it combines types that do not fit together"
        case _:
            return ""


def _kind(expected: str) -> str:
    inside = expected.removeprefix(_OF_MANY)
    return expected if inside == expected else f"array of {inside}s"


def _got(actual: str) -> str:
    return f"one with {_INSIDE[actual]} in it" if actual in _INSIDE else actual


def _either(kinds: list[str]) -> str:
    return " or ".join(part for part in (", ".join(kinds[:-1]), kinds[-1]) if part)
