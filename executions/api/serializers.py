"""Executions on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from executions.models import Execution, Step
from executions.seeds import SEED_BITS
from executions.states import ExecutionState
from orchestrator.core.serializers import StrictSerializer


class SubmitSerializer(StrictSerializer):
    """What it takes to submit a run."""

    blueprint = serializers.CharField(max_length=100, help_text="The blueprint's name.")
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="The newest if not said."
    )
    inputs = serializers.DictField(
        default=dict, help_text="Checked against the blueprint's schema."
    )
    seed = serializers.IntegerField(min_value=0, max_value=2**SEED_BITS - 1, required=False)


class ListQuerySerializer(StrictSerializer):
    """What a list can be narrowed by."""

    state = serializers.ChoiceField(choices=ExecutionState.choices, required=False)
    blueprint = serializers.CharField(max_length=100, required=False)
    page_size = serializers.IntegerField(min_value=1, max_value=200, required=False)
    cursor = serializers.CharField(required=False)


class StepSerializer(serializers.ModelSerializer[Step]):
    """One step of a run."""

    class Meta:
        model = Step
        fields = (
            "path", "uses", "state", "attempt", "output", "code", "message", "started_at", "finished_at",
        )  # fmt: skip
        read_only_fields = fields


class ExecutionSerializer(serializers.ModelSerializer[Execution]):
    """One run as lists show it."""

    id = serializers.CharField(source="public_id")
    blueprint = serializers.CharField(source="blueprint_version.blueprint.name")
    version = serializers.IntegerField(source="blueprint_version.number")
    steps_done = serializers.IntegerField()
    steps_total = serializers.IntegerField()

    class Meta:
        model = Execution
        fields: tuple[str, ...] = (
            "id", "blueprint", "version", "state", "code", "message", "steps_done", "steps_total", "isolation",
            "isolation_reason", "worker", "requested_by", "created_at", "started_at", "finished_at",
        )  # fmt: skip
        read_only_fields = fields


class ExecutionDetailSerializer(ExecutionSerializer):
    """One run with its inputs and steps."""

    inputs = serializers.SerializerMethodField()
    seed = serializers.IntegerField()
    steps = StepSerializer(many=True)

    class Meta(ExecutionSerializer.Meta):
        fields = (*ExecutionSerializer.Meta.fields, "inputs", "seed", "steps")
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_inputs(self, run: Execution) -> dict[str, Any]:
        """As they were submitted."""
        inputs: dict[str, Any] = run.inputs
        return inputs


class ProblemSerializer(serializers.Serializer[Any]):
    """An error, as RFC 9457 has it."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="Stable; decide by this.")
    field = serializers.CharField(required=False)

    def get_fields(self) -> Any:
        """Add `errors`, a name that DRF's class has taken."""
        errors = serializers.ListField(child=serializers.DictField(), required=False)
        return {**super().get_fields(), "errors": errors}
