"""The resource types with the form of their definitions, for people and editors."""

import dataclasses
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from isolane.providers.registry import provider_of
from isolane.providers.registry import types as known_types
from isolane.shapes import schema_of


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResourceType:
    """A type with the form of its definitions."""

    type: str
    summary: str
    config: dict[str, Any]  # a JSON Schema
    secrets: dict[str, str]  # name to description


def resource_types() -> list[ResourceType]:
    """Return all installed types, by name."""
    return [resource_type(name) for name in sorted(known_types())]


def resource_type(name: str) -> ResourceType:
    """Return one type; LookupError names the known ones."""
    provider = provider_of(name)
    summary = (type(provider).__doc__ or "").strip().partition("\n")[0]
    return ResourceType(
        type=name,
        summary=summary,
        config=config_schema(provider.config),
        secrets=dict(provider.secrets),
    )


def config_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a config: of dataclasses, and of every type that a node's parameter may have."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if dataclasses.is_dataclass(origin):
        return _record_schema(origin)
    if origin in (Union, types.UnionType):
        (inner,) = (arg for arg in args if arg is not types.NoneType)
        return {"anyOf": [config_schema(inner), {"type": "null"}]}
    if origin in (list, tuple) and args:
        return {"type": "array", "items": config_schema(args[0])}
    return schema_of(hint)


def _record_schema(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    properties, required = {}, []
    for field in dataclasses.fields(cls):
        schema = config_schema(hints[field.name])
        if field.default is not dataclasses.MISSING:
            schema = schema | {"default": _plain(field.default)}
        elif field.default_factory is not dataclasses.MISSING:
            schema = schema | {"default": _plain(field.default_factory())}
        else:
            required.append(field.name)
        properties[field.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
