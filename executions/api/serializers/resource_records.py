"""The ledger of a run's resources as JSON."""

from typing import Any, ClassVar

from rest_framework import serializers

from executions.api.serializers.history import HistoryPageSerializer
from executions.models import ResourceRecord
from foundation.serializers import StrictSerializer


class ResourceRecordSerializer(serializers.ModelSerializer[ResourceRecord]):
    """A handle of a run, or a credential that was issued for it on a remote server."""

    duration_s = serializers.SerializerMethodField()
    error = serializers.CharField(source="error_text", read_only=True, help_text="Secrets masked.")

    class Meta:
        model = ResourceRecord
        fields: tuple[str, ...] = (
            "resource_id", "name", "type", "definition", "step", "epoch", "opened_at", "closed_at", "ended",
            "duration_s", "error",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs: ClassVar = {
            "name": {"help_text": "Name of the resource in the blueprint."},
            "step": {
                "help_text": "Path of the step that opened it; empty if the run's context did."
            },
            "ended": {"help_text": "How it ended; empty while it is open."},
            "error": {"help_text": "Secrets are masked."},
        }

    def get_duration_s(self, record: ResourceRecord) -> float | None:
        """Seconds from opening to closing; null while it is open."""
        if record.closed_at is None:
            return None
        return round((record.closed_at - record.opened_at).total_seconds(), 6)


class BalanceSerializer(serializers.Serializer[Any]):
    """Totals of the ledger. A run is clean when everything that was allocated is gone."""

    allocated = serializers.IntegerField()
    disposed = serializers.IntegerField()
    open = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Number of entries that could not be allocated.")
    ended = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Numbers by their end: disposed, killed with the runtime, or swept after the worker was lost.",
    )
    clean = serializers.BooleanField(source="is_clean")


class LedgerSerializer(HistoryPageSerializer):
    """The ledger of a run, the oldest entry first."""

    execution_id = serializers.CharField()
    tenant_id = serializers.CharField()
    balance = BalanceSerializer()
    results = ResourceRecordSerializer(many=True)


class LeftoverSerializer(ResourceRecordSerializer):
    """An entry that is still open although its run has ended."""

    execution_id = serializers.CharField(source="execution.public_id")

    class Meta(ResourceRecordSerializer.Meta):
        fields = ("execution_id", *ResourceRecordSerializer.Meta.fields)
        read_only_fields = fields


class UncleanSerializer(serializers.Serializer[Any]):
    """The runs that have ended and are not clean."""

    total = serializers.IntegerField(help_text="Number of runs.")
    results = LeftoverSerializer(many=True, help_text="Their open entries, the oldest first.")


class AbandonSerializer(StrictSerializer):
    """The entry to give up."""

    resource_id = serializers.CharField(
        max_length=300, help_text="`resource_id` of an entry in the list of unclean runs."
    )
