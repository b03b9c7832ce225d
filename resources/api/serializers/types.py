"""Types of resources as JSON."""

from typing import Any

from rest_framework import serializers

from foundation.serializers import ObjectField
from resources.api.serializers.references import ReferencesField


class ResourceTypeSerializer(serializers.Serializer[Any]):
    """A type of resource, with the fields and secrets of its definitions."""

    type = serializers.CharField()
    summary = serializers.CharField()
    config = ObjectField(help_text="JSON Schema of `config` in a definition.")
    secrets = ReferencesField(help_text="Names of the secrets it takes, each with a description.")


class ResourceTypesSerializer(serializers.Serializer[Any]):
    """All types, ordered by name."""

    results = ResourceTypeSerializer(many=True)
