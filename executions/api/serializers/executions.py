"""Executions and their steps as JSON."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from executions.blueprints.amounts import amount_text
from executions.models import Execution, Step
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState, StepState
from foundation.serializers import ObjectField, PageQuerySerializer, StrictSerializer
from resources.isolation_choice import describe_reason

MAX_LABELS = 20  # in one query
ANY_OBJECT = {"type": "object", "additionalProperties": True}
ANY_VALUE = {"nullable": True, "description": "Any JSON."}
AMOUNTS = {
    "type": "object",
    "additionalProperties": {"type": "string", "format": "decimal"},
    "description": "Amounts by kind, as text, since floats are rounded.",
}


@extend_schema_field(ANY_OBJECT)
class InputsField(serializers.Field[dict[str, Any], Any, Any, Any]):
    """A JSON object, not looked into: DRF's own fields visit each value, which takes long for large objects."""

    default_error_messages: ClassVar = {
        "not_a_dict": 'Expected a dictionary of items but got type "{input_type}".'
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse everything that is not an object."""
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        return data


class SubmitSerializer(StrictSerializer):
    """A request to run a blueprint."""

    blueprint = serializers.CharField(max_length=100, help_text="Name of the blueprint.")
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="Version of the blueprint; the newest if omitted."
    )
    inputs = InputsField(
        default=dict, help_text="Inputs of the run, checked against the blueprint's schema."
    )
    seed = serializers.IntegerField(
        min_value=0,
        max_value=2**SEED_BITS - 1,
        required=False,
        help_text="Seed of the run's random numbers; random if omitted.",
    )


class ListQuerySerializer(PageQuerySerializer):
    """Filters of the list of runs."""

    state = serializers.ChoiceField(choices=ExecutionState.choices, required=False)
    blueprint = serializers.CharField(
        max_length=100, required=False, help_text="Name of a blueprint."
    )
    label = serializers.ListField(  # type: ignore[assignment]  # DRF takes fields out of the class
        child=serializers.CharField(max_length=300),
        max_length=MAX_LABELS,
        required=False,
        help_text="A label as key:value. If repeated, a run must have all of them.",
    )


@extend_schema_field(ANY_VALUE)
class AnyField(serializers.JSONField):
    """Any JSON value."""


@extend_schema_field(AMOUNTS)
class AmountsField(serializers.Field[Any, Any, dict[str, str], Any]):
    """Costs by kind."""

    def to_representation(self, value: Any) -> dict[str, str]:
        """Render each amount as text."""
        return {kind: amount_text(amount) for kind, amount in sorted(value.items())}


class IsolationReasonField(serializers.CharField):
    """A stored reason, shown as a sentence."""

    def to_representation(self, value: str) -> str:
        """Return the sentence."""
        return describe_reason(value)


class StepSerializer(serializers.ModelSerializer[Step]):
    """A step of a run."""

    inputs = AnyField(help_text="Resolved parameters. Sensitive values are masked.")
    output = AnyField()
    recovered = serializers.SerializerMethodField()

    class Meta:
        model = Step
        fields = (
            "path", "uses", "state", "attempt", "inputs", "output", "code", "message", "cause", "recovered",
            "retry_at", "started_at", "finished_at",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs: ClassVar = {"retry_at": {"help_text": "Earliest time of the next attempt."}}

    def get_recovered(self, step: Step) -> bool:
        """True if the step failed and its recovery node took over; code and message describe the failure."""
        return step.state == StepState.SUCCEEDED and bool(step.code)


class ExecutionSerializer(serializers.ModelSerializer[Execution]):
    """A run in a list."""

    id = serializers.CharField(source="public_id")
    blueprint = serializers.CharField(source="blueprint_version.blueprint.name")
    version = serializers.IntegerField(source="blueprint_version.number")
    labels = ObjectField()
    costs = AmountsField()
    isolation_reason = IsolationReasonField(read_only=True)
    steps_done = serializers.IntegerField()
    steps_total = serializers.IntegerField()

    class Meta:
        model = Execution
        fields: tuple[str, ...] = (
            "id", "blueprint", "version", "state", "code", "message", "labels", "costs", "steps_done", "steps_total",
            "isolation", "isolation_reason", "worker", "requested_by", "created_at", "started_at", "finished_at",
            "wake_at",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs: ClassVar = {
            "worker": {"help_text": "Name of the worker that ran it last."},
            "wake_at": {"help_text": "End of the wait, if the run waits without a slot."},
        }


class UsageSerializer(serializers.Serializer[Execution]):
    """Use of the machine by a run, added up when each of its placements ends; 0 if nobody measured it."""

    cpu_seconds = serializers.FloatField(
        help_text="Processor time in seconds of all of its processes, summed over its placements."
    )
    peak_ram_mb = serializers.FloatField(
        help_text="Most RAM in MiB at a time, the greatest of its placements."
    )


class ExecutionDetailSerializer(ExecutionSerializer):
    """A run with its values and steps. Sensitive values are masked."""

    inputs = ObjectField()
    outputs = AnyField(
        help_text="Outputs of the blueprint, once the run has succeeded; null if it declares none."
    )
    variables = ObjectField()
    question = serializers.CharField(
        help_text="The open question to a person; it expires at `wake_at`."
    )
    seed = serializers.IntegerField()
    express = serializers.BooleanField()
    replay_of = serializers.SerializerMethodField()
    usage = UsageSerializer(source="*", read_only=True)
    steps = StepSerializer(many=True)

    class Meta(ExecutionSerializer.Meta):
        fields = (
            *ExecutionSerializer.Meta.fields, "request_id", "replay_of", "seed", "express", "inputs", "outputs",
            "variables", "question", "usage", "steps",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field({"type": "string", "nullable": True})
    def get_replay_of(self, run: Execution) -> str | None:
        """Id of the run that this one repeats."""
        return f"exec_{run.replay_of}" if run.replay_of else None
