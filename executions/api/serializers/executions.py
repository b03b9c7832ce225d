"""Executions on the wire."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from executions.blueprints.amounts import amount_text
from executions.models import Execution, Step
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState, StepState
from foundation.serializers import StrictSerializer
from resources.levels import describe_reason

MAX_LABELS = 20  # that one list is narrowed by
ANY_OBJECT = {"type": "object", "additionalProperties": True}
ANY_VALUE = {"nullable": True, "description": "Any JSON."}
AMOUNTS = {
    "type": "object",
    "additionalProperties": {"type": "string", "format": "decimal"},
    "description": "By kind. Amounts are text: floats round.",
}


@extend_schema_field(ANY_OBJECT)
class InputsField(serializers.Field[dict[str, Any], Any, Any, Any]):
    """An object, taken as it is: DRF's own fields look at each value, which takes long where there are many."""

    default_error_messages: ClassVar = {
        "not_a_dict": 'Expected a dictionary of items but got type "{input_type}".'
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse all but objects."""
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        return data


class SubmitSerializer(StrictSerializer):
    """What it takes to submit a run."""

    blueprint = serializers.CharField(max_length=100, help_text="The blueprint's name.")
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="The newest if not said."
    )
    inputs = InputsField(default=dict, help_text="Checked against the blueprint's schema.")
    seed = serializers.IntegerField(min_value=0, max_value=2**SEED_BITS - 1, required=False)


class ListQuerySerializer(StrictSerializer):
    """What a list can be narrowed by."""

    state = serializers.ChoiceField(choices=ExecutionState.choices, required=False)
    blueprint = serializers.CharField(max_length=100, required=False)
    label = serializers.ListField(  # type: ignore[assignment]  # DRF takes fields out of the class
        child=serializers.CharField(max_length=300),
        max_length=MAX_LABELS,
        required=False,
        help_text="key:value; repeated, a run must carry all.",
    )
    page_size = serializers.IntegerField(min_value=1, max_value=200, required=False)
    cursor = serializers.CharField(required=False)


@extend_schema_field(ANY_VALUE)
class AnyField(serializers.JSONField):
    """What may be any JSON."""


@extend_schema_field(ANY_OBJECT)
class ObjectField(serializers.JSONField):
    """What is always an object."""


@extend_schema_field(AMOUNTS)
class AmountsField(serializers.Field[Any, Any, dict[str, str], Any]):
    """Costs by kind."""

    def to_representation(self, value: Any) -> dict[str, str]:
        """As text, as all amounts are."""
        return {kind: amount_text(amount) for kind, amount in sorted(value.items())}


class IsolationReasonField(serializers.CharField):
    """A stored reason, shown as a sentence."""

    def to_representation(self, value: str) -> str:
        """Return the sentence."""
        return describe_reason(value)


class StepSerializer(serializers.ModelSerializer[Step]):
    """One step of a run."""

    inputs = AnyField(help_text="Its parameters, resolved; what is sensitive is masked.")
    output = AnyField()
    recovered = serializers.SerializerMethodField()

    class Meta:
        model = Step
        fields = (
            "path", "uses", "state", "attempt", "inputs", "output", "code", "message", "cause", "recovered",
            "retry_at", "started_at", "finished_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_recovered(self, step: Step) -> bool:
        """Whether another node took its place; code and message are then those of its failure."""
        return step.state == StepState.SUCCEEDED and bool(step.code)


class ExecutionSerializer(serializers.ModelSerializer[Execution]):
    """One run as lists show it."""

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


class ExecutionDetailSerializer(ExecutionSerializer):
    """One run with its values and steps; what is sensitive is masked."""

    inputs = ObjectField()
    outputs = AnyField(help_text="What the blueprint's outputs came to, once it has succeeded.")
    variables = ObjectField()
    question = serializers.CharField(help_text="What a person is asked, until `wake_at`.")
    seed = serializers.IntegerField()
    express = serializers.BooleanField()
    replay_of = serializers.SerializerMethodField()
    steps = StepSerializer(many=True)

    class Meta(ExecutionSerializer.Meta):
        fields = (
            *ExecutionSerializer.Meta.fields, "request_id", "replay_of", "seed", "express", "inputs", "outputs",
            "variables", "question", "steps",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field({"type": "string", "nullable": True})
    def get_replay_of(self, run: Execution) -> str | None:
        """The id of the run that it repeats."""
        return f"exec_{run.replay_of}" if run.replay_of else None
