"""Blueprints and nodes on the wire."""

from typing import Any

from rest_framework import serializers

from executions.api.serializers.executions import ObjectField
from executions.blueprints.reading import MAX_DOCUMENT_BYTES
from executions.models import Blueprint, BlueprintVersion
from executions.selectors.executions import versions_of
from executions.services.publishing import source_of
from foundation.serializers import StrictSerializer


class SourceSerializer(StrictSerializer):
    """A blueprint as its author wrote it."""

    source = serializers.CharField(  # type: ignore[assignment]  # DRF takes fields out of the class
        max_length=MAX_DOCUMENT_BYTES, trim_whitespace=False, help_text="YAML or JSON, as text."
    )


class BlueprintsQuerySerializer(StrictSerializer):
    """How much of a list is wanted."""

    page_size = serializers.IntegerField(min_value=1, max_value=200, required=False)
    cursor = serializers.CharField(required=False)


class DiffQuerySerializer(StrictSerializer):
    """Which two versions are compared."""

    old = serializers.IntegerField(min_value=1)
    new = serializers.IntegerField(min_value=1)


class BlueprintSerializer(serializers.ModelSerializer[Blueprint]):
    """One blueprint as lists show it."""

    version = serializers.IntegerField(source="newest", help_text="The newest.")
    versions_total = serializers.IntegerField()
    published_at = serializers.DateTimeField(help_text="When the newest was published.")

    class Meta:
        model = Blueprint
        fields = ("name", "version", "versions_total", "created_at", "published_at")
        read_only_fields = fields


class VersionSerializer(serializers.ModelSerializer[BlueprintVersion]):
    """One version without its content."""

    version = serializers.IntegerField(source="number")

    class Meta:
        model = BlueprintVersion
        fields: tuple[str, ...] = ("version", "content_hash", "created_at")
        read_only_fields = fields


class VersionDetailSerializer(VersionSerializer):
    """One version with its content."""

    name = serializers.CharField(source="blueprint.name")
    document = ObjectField(source="content")
    source = serializers.SerializerMethodField()  # type: ignore[assignment]  # likewise

    class Meta(VersionSerializer.Meta):
        fields = ("name", *VersionSerializer.Meta.fields, "document", "source")
        read_only_fields = fields

    def get_source(self, version: BlueprintVersion) -> str:
        """The document as YAML, always the same for the same content."""
        return source_of(version)


class BlueprintDetailSerializer(VersionDetailSerializer):
    """The newest version, and which others there are."""

    versions = serializers.SerializerMethodField()

    class Meta(VersionDetailSerializer.Meta):
        fields = (*VersionDetailSerializer.Meta.fields, "versions")
        read_only_fields = fields

    def get_versions(self, version: BlueprintVersion) -> list[dict[str, Any]]:
        """The newest first, at most a hundred."""
        return list(VersionSerializer(versions_of(version.blueprint), many=True).data)


class ValidatedSerializer(serializers.Serializer[Any]):
    """What was read from a source that fits."""

    name = serializers.CharField()
    document = ObjectField()
    nodes_known = serializers.BooleanField(
        help_text="Whether a worker has described its nodes; if not, names and parameters were not checked."
    )


class DiffSerializer(serializers.Serializer[Any]):
    """What changed between two versions."""

    name = serializers.CharField()
    old = serializers.IntegerField()
    new = serializers.IntegerField()
    diff = serializers.CharField(help_text="A unified diff of YAML; empty where nothing changed.")


class NodeSerializer(serializers.Serializer[Any]):
    """A node that steps can use."""

    name = serializers.CharField()
    summary = serializers.CharField()
    parameters = ObjectField(help_text="A JSON Schema.")
    idempotent = serializers.BooleanField()
    deterministic = serializers.BooleanField()
    uses_key = serializers.BooleanField(help_text="Whether a far side honours its idempotency key.")


class NodesSerializer(serializers.Serializer[Any]):
    """All nodes, by name."""

    results = NodeSerializer(many=True)
