"""The rules that a definition must meet before it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from foundation.errors import InvalidInput
from isolane.providers.base import Provider
from isolane.providers.registry import provider_of
from isolane.shapes import ShapeError, build
from resources.addresses import AddressRefused, check_literal, policy_from_settings
from resources.models import DefinitionScope
from resources.resolvers.registry import UnknownScheme, parse, resolver_of
from resources.services.names import check_name
from resources.services.plain_values import check_config

_WAY_OUT = "'isolane resources types' shows what a type takes"


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionInput:
    """A definition as its author wrote it, not checked yet."""

    name: str
    type: str
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    scope: str = DefinitionScope.STEP.value


def check_definition_input(given: DefinitionInput) -> frozenset[str]:
    """Refuse a definition that does not fit its type; return the names of the stored secrets that it refers to."""
    check_name(given.name)
    provider = _provider(given.type)
    if given.scope not in DefinitionScope.values:
        raise InvalidInput(
            f"scope is {given.scope!r}; use {' or '.join(DefinitionScope.values)}.", field="scope"
        )
    stored = _check_secrets(provider, given.secrets)
    config = check_config(given.config)
    _check_form(provider, config, frozenset(given.secrets))
    _check_place(given.type, config)
    return stored


def _check_form(
    provider: Provider[Any], config: Mapping[str, Any], secrets: frozenset[str]
) -> None:
    try:
        built = build(provider.config, config, "config")
    except ShapeError as error:
        reason = error.reason if error.where == "config" else f"{error.where}: {error.reason}"
        raise _refusal(provider, reason, _WAY_OUT) from None
    try:
        provider.check_definition(built, secrets)
    except ValueError as error:
        raise _refusal(provider, str(error)) from None


def _refusal(provider: Provider[Any], reason: str, way_out: str = "") -> InvalidInput:
    """Return the error for a provider's reason, with the path of the field that the reason begins with."""
    named = reason.partition(":")[0]
    if named in {field.name for field in fields(provider.config)}:
        named, reason = f"config.{named}", f"config.{reason}"
    elif not named.startswith(("config", "secrets")) or named == reason:
        named, reason = "config", f"config: {reason}"
    return InvalidInput(f"{reason}; {way_out}." if way_out else f"{reason}.", field=named)


def _check_place(type_: str, config: Mapping[str, Any]) -> None:
    try:
        check_literal(type_, config, policy_from_settings())
    except AddressRefused as error:
        named = error.field if error.field in config else "base_url"
        raise AddressRefused(f"config.{named}: {error.detail}", field=f"config.{named}") from None


def _provider(type_: str) -> Provider[Any]:
    try:
        return provider_of(type_)
    except LookupError as error:
        raise InvalidInput(f"type: {error.args[0]}", field="type") from None


def _check_secrets(provider: Provider[Any], secrets: object) -> frozenset[str]:
    if not isinstance(secrets, Mapping):
        raise InvalidInput("secrets is not an object; write names and references.", field="secrets")
    stored = set()
    for name, reference in secrets.items():
        if name not in provider.secrets:
            known = ", ".join(provider.secrets) or "none"
            raise InvalidInput(
                f"secrets: the type {provider.type!r} takes no secret {str(name)[:80]!r}; known are {known}.",
                field="secrets",
            )
        stored |= _stored_name(f"secrets.{name}", reference)
    return frozenset(stored)


def _stored_name(where: str, reference: object) -> set[str]:
    """Return the name of the stored secret, if the reference is to one; a scheme must be known."""
    if not isinstance(reference, str):
        raise InvalidInput(f"{where} is not a reference; write the name of a secret.", field=where)
    try:
        parsed = parse(reference)
    except InvalidInput:
        # Not repeated: it may be the secret itself, written in the wrong place.
        raise InvalidInput(
            f"{where} is not a reference: store the value with 'isolane secrets set NAME' and write that name, or"
            " env:NAME or file:name.",
            field=where,
        ) from None
    if not parsed.scheme:
        return {parsed.path}
    try:
        resolver_of(parsed.scheme)
    except UnknownScheme as error:
        raise UnknownScheme(f"{where}: {error.detail}", field=where) from None
    return set()
