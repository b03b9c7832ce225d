"""Definitions, types and secrets on the wire; a secret's value only ever comes in."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.serializers import StrictSerializer
from resources.models import DefinitionScope, ResourceDefinition, Secret
from resources.resolvers.base import MAX_BYTES, MIN_CHARACTERS

REFERENCES = {"type": "object", "additionalProperties": {"type": "string"}}
NAME_LENGTH = 200  # the service says what a name is; this only bounds what it repeats


class PageSerializer(StrictSerializer):
    """How much of a list is wanted."""

    page_size = serializers.IntegerField(min_value=1, max_value=200, required=False)
    cursor = serializers.CharField(required=False)


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """What is always an object."""


@extend_schema_field(REFERENCES)
class ReferencesField(serializers.JSONField):
    """From the provider's name of a secret to the reference to it."""


class ChangedDefinitionSerializer(StrictSerializer):
    """All of a definition but its name."""

    type = serializers.CharField(max_length=NAME_LENGTH)
    config = ObjectField(default=dict, help_text="As GET /resource-types describes it.")
    secrets = ReferencesField(
        default=dict, help_text="References: the name of a stored secret, env:NAME or file:name."
    )
    scope = serializers.ChoiceField(choices=DefinitionScope.choices, default=DefinitionScope.STEP)


class NewDefinitionSerializer(ChangedDefinitionSerializer):
    """A definition."""

    name = serializers.CharField(max_length=NAME_LENGTH)


class DefinitionSerializer(serializers.ModelSerializer[ResourceDefinition]):
    """A definition as it is shown: with references to secrets, never a value."""

    config = ObjectField()
    secrets = ReferencesField()

    class Meta:
        model = ResourceDefinition
        fields = (
            "name", "type", "config", "secrets", "scope", "created_at", "created_by", "updated_at", "updated_by",
        )  # fmt: skip
        read_only_fields = fields


class ValueField(serializers.CharField):
    """A secret: text as it is, whose refusals never repeat it."""

    def to_internal_value(self, data: object) -> str:
        """Refuse numbers, which would be stored in a form that was not sent."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class ValueSerializer(StrictSerializer):
    """The value of a secret."""

    value = ValueField(
        write_only=True,
        trim_whitespace=False,
        help_text=f"At least {MIN_CHARACTERS} characters, at most {MAX_BYTES} bytes. Nothing shows it again.",
    )


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """What can be seen of a secret."""

    class Meta:
        model = Secret
        fields = ("name", "version", "created_at", "updated_at", "updated_by")
        read_only_fields = fields


class ResourceTypeSerializer(serializers.Serializer[Any]):
    """What definitions of a type hold."""

    type = serializers.CharField()
    summary = serializers.CharField()
    config = ObjectField(help_text="A JSON Schema.")
    secrets = ReferencesField(help_text="The secrets that it takes, and what they are.")


class ResourceTypesSerializer(serializers.Serializer[Any]):
    """All types, by name."""

    results = ResourceTypeSerializer(many=True)
