"""Isolation levels and limits as JSON."""

from typing import Any

from rest_framework import serializers

from executions.services.levels import TenantLevels
from tenants.isolation import Isolation


class RunLimitsSerializer(serializers.Serializer[Any]):
    """The limits of one run; null is no limit."""

    cpu = serializers.FloatField(allow_null=True, help_text="Cores.")
    ram_mb = serializers.IntegerField(allow_null=True)
    processes = serializers.IntegerField(allow_null=True, help_text="Processes and threads.")
    disk_mb = serializers.IntegerField(allow_null=True, help_text="Files that it writes.")
    open_files = serializers.IntegerField(allow_null=True, help_text="Of each process.")
    output_kb = serializers.IntegerField(
        allow_null=True, help_text="Log lines of one attempt of a step."
    )
    connections = serializers.IntegerField(
        allow_null=True, help_text="Through the gate, open at the same time."
    )
    network_mb = serializers.IntegerField(
        allow_null=True, help_text="Sent and received through the gate, both together."
    )
    idle_seconds = serializers.IntegerField(
        allow_null=True, help_text="Without a byte; then a connection through the gate is closed."
    )


class LevelsSerializer(serializers.Serializer[TenantLevels]):
    """The level and limits of a run whose blueprint asks for nothing."""

    offered = serializers.ListField(
        child=serializers.ChoiceField(choices=Isolation.choices),
        help_text="Levels that the living workers offer, the weakest first; while none lives, those of the settings.",
    )
    level = serializers.SerializerMethodField(
        help_text="The level of its runs; empty if no worker offers what the tenant needs."
    )
    reason = serializers.CharField(
        help_text="The rule that set it; if there is none, why, and the way out."
    )
    limits = RunLimitsSerializer(
        help_text="A blueprint may ask for less. `shared` keeps output_kb only."
    )
    max_run_minutes = serializers.IntegerField(allow_null=True)

    def get_level(self, found: TenantLevels) -> str:
        """Return the level."""
        return found.level or ""
