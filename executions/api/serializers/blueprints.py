"""Blueprints and nodes as JSON."""

from typing import Any

from rest_framework import serializers

from executions.blueprints.reading import MAX_DOCUMENT_BYTES
from executions.models import Blueprint, BlueprintVersion
from executions.selectors.blueprints import versions_of
from executions.services.publishing import source_of
from foundation.serializers import ObjectField, StrictSerializer


class SourceSerializer(StrictSerializer):
    """The text of a blueprint."""

    source = serializers.CharField(  # type: ignore[assignment]  # DRF takes fields out of the class
        max_length=MAX_DOCUMENT_BYTES, trim_whitespace=False, help_text="YAML or JSON, as text."
    )


class DiffQuerySerializer(StrictSerializer):
    """The two versions to compare."""

    old = serializers.IntegerField(min_value=1, help_text="Number of the older version.")
    new = serializers.IntegerField(min_value=1, help_text="Number of the newer version.")


class BlueprintSerializer(serializers.ModelSerializer[Blueprint]):
    """A blueprint in a list."""

    version = serializers.IntegerField(source="newest", help_text="Number of the newest version.")
    versions_total = serializers.IntegerField()
    published_at = serializers.DateTimeField(
        help_text="Time when the newest version was published."
    )

    class Meta:
        model = Blueprint
        fields = ("name", "version", "versions_total", "created_at", "published_at")
        read_only_fields = fields


class VersionSerializer(serializers.ModelSerializer[BlueprintVersion]):
    """A version without its content."""

    version = serializers.IntegerField(source="number")

    class Meta:
        model = BlueprintVersion
        fields: tuple[str, ...] = ("version", "content_hash", "created_at")
        read_only_fields = fields


class VersionDetailSerializer(VersionSerializer):
    """A version with its content."""

    name = serializers.CharField(source="blueprint.name")
    document = ObjectField(source="content")
    source = serializers.SerializerMethodField()  # type: ignore[assignment]  # likewise

    class Meta(VersionSerializer.Meta):
        fields = ("name", *VersionSerializer.Meta.fields, "document", "source")
        read_only_fields = fields

    def get_source(self, version: BlueprintVersion) -> str:
        """The document as YAML; the same content always gives the same text."""
        return source_of(version)


class BlueprintDetailSerializer(VersionDetailSerializer):
    """The newest version of a blueprint, and a list of its versions."""

    versions = serializers.SerializerMethodField()

    class Meta(VersionDetailSerializer.Meta):
        fields = (*VersionDetailSerializer.Meta.fields, "versions")
        read_only_fields = fields

    def get_versions(self, version: BlueprintVersion) -> list[dict[str, Any]]:
        """The newest first, at most 100."""
        return list(VersionSerializer(versions_of(version.blueprint), many=True).data)


class ValidatedSerializer(serializers.Serializer[Any]):
    """A valid blueprint, parsed."""

    name = serializers.CharField()
    document = ObjectField()
    nodes_known = serializers.BooleanField(
        help_text="False until a worker has described its nodes; node names and parameters are not checked before."
    )


class DiffSerializer(serializers.Serializer[Any]):
    """The difference between two versions."""

    name = serializers.CharField()
    old = serializers.IntegerField()
    new = serializers.IntegerField()
    diff = serializers.CharField(
        help_text="A unified diff of the YAML texts; empty if nothing changed."
    )


class NodeSerializer(serializers.Serializer[Any]):
    """A node that steps can use."""

    name = serializers.CharField()
    summary = serializers.CharField()
    parameters = ObjectField(help_text="JSON Schema of the parameters.")
    idempotent = serializers.BooleanField()
    deterministic = serializers.BooleanField()
    uses_key = serializers.BooleanField(
        help_text="True if a remote server honours its idempotency key."
    )


class NodesSerializer(serializers.Serializer[Any]):
    """All nodes, ordered by name."""

    results = NodeSerializer(many=True)
