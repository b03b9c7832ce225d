"""The records of a run's resources, on the wire."""

from typing import Any

from rest_framework import serializers

from executions.api.serializers.history import PageSerializer
from executions.models import ResourceRecord
from foundation.serializers import StrictSerializer


class ResourceRecordSerializer(serializers.ModelSerializer[ResourceRecord]):
    """One handle, or one credential that was issued at a remote server."""

    duration_s = serializers.SerializerMethodField()
    error = serializers.CharField(source="error_text", read_only=True, help_text="Secrets masked.")

    class Meta:
        model = ResourceRecord
        fields: tuple[str, ...] = (
            "resource_id",
            "name",
            "type",
            "definition",
            "step",
            "epoch",
            "opened_at",
            "closed_at",
            "ended",
            "duration_s",
            "error",
        )
        read_only_fields = fields

    def get_duration_s(self, record: ResourceRecord) -> float | None:
        """How long it was there; none while it is."""
        if record.closed_at is None:
            return None
        return round((record.closed_at - record.opened_at).total_seconds(), 6)


class BalanceSerializer(serializers.Serializer[Any]):
    """The ledger in numbers; a run is clean when all that was allocated is gone."""

    allocated = serializers.IntegerField()
    disposed = serializers.IntegerField()
    open = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="What never came to be.")
    ended = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How: disposed, killed with its runtime, swept after its worker was gone.",
    )
    clean = serializers.BooleanField(source="is_clean")


class LedgerSerializer(PageSerializer):
    """All of it, the oldest first."""

    execution_id = serializers.CharField()
    tenant_id = serializers.CharField()
    balance = BalanceSerializer()
    results = ResourceRecordSerializer(many=True)


class LeftoverSerializer(ResourceRecordSerializer):
    """Something that a run which has ended still has."""

    execution_id = serializers.CharField(source="execution.public_id")

    class Meta(ResourceRecordSerializer.Meta):
        fields = ("execution_id", *ResourceRecordSerializer.Meta.fields)
        read_only_fields = fields


class UncleanSerializer(serializers.Serializer[Any]):
    """Runs that have ended and are not clean."""

    total = serializers.IntegerField(help_text="How many runs.")
    results = LeftoverSerializer(many=True, help_text="What they have left, the oldest first.")


class AbandonSerializer(StrictSerializer):
    """What is given up."""

    resource_id = serializers.CharField(
        max_length=300, help_text="As the list of unclean runs has it."
    )
