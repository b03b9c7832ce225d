"""What happened in an execution, on the wire."""

from typing import Any

from rest_framework import serializers

from executions.api.serializers.executions import AmountsField
from executions.blueprints.amounts import amount_text
from executions.explain.events import describe_event
from executions.models import CostRecord, ExecutionEvent, StepLog
from executions.states import ExecutionState
from foundation.serializers import StrictSerializer

PAGE = 200
MAX_PAGE = 1000
MAX_NUMBER = 2**63 - 1  # that PostgreSQL holds


class SinceSerializer(StrictSerializer):
    """Where to go on reading."""

    after = serializers.IntegerField(
        min_value=0, max_value=MAX_NUMBER, default=0, help_text="The last number that was seen."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=MAX_PAGE, default=PAGE)


class LogsQuerySerializer(SinceSerializer):
    """The same, of one step if it is named."""

    step = serializers.CharField(max_length=200, required=False)


class EventSerializer(serializers.ModelSerializer[ExecutionEvent]):
    """One thing that happened."""

    class Meta:
        model = ExecutionEvent
        fields = ("sequence", "at", "kind", "step", "data")
        read_only_fields = fields


class SentenceSerializer(serializers.ModelSerializer[ExecutionEvent]):
    """One thing that happened, told."""

    text = serializers.SerializerMethodField()

    class Meta:
        model = ExecutionEvent
        fields = ("sequence", "at", "kind", "step", "text")
        read_only_fields = fields

    def get_text(self, event: ExecutionEvent) -> str:
        """A sentence for people; programs decide by `kind` and the event's data."""
        return describe_event(event.kind, event.step, event.data)


class LogSerializer(serializers.ModelSerializer[StepLog]):
    """One line that a step said, or a library in it; the context gives the tenant's name."""

    execution_id = serializers.SerializerMethodField()
    tenant_id = serializers.SerializerMethodField()

    class Meta:
        model = StepLog
        fields = (
            "number",
            "at",
            "level",
            "execution_id",
            "tenant_id",
            "step",
            "attempt",
            "message",
        )
        read_only_fields = fields

    def get_execution_id(self, line: StepLog) -> str:
        """As the API writes ids."""
        return f"exec_{line.execution_id}"

    def get_tenant_id(self, _: StepLog) -> str:
        """The name by which the tenant is known."""
        return str(self.context["tenant_id"])


class CostSerializer(serializers.ModelSerializer[CostRecord]):
    """What one attempt cost of one kind."""

    amount = serializers.SerializerMethodField()

    class Meta:
        model = CostRecord
        fields = ("step", "attempt", "kind", "amount", "at")
        read_only_fields = fields

    def get_amount(self, record: CostRecord) -> str:
        """As text: floats round."""
        return amount_text(record.amount)


class PageSerializer(serializers.Serializer[Any]):
    """A piece of a history that is read from its beginning."""

    after = serializers.IntegerField(help_text="Send it as `after` to read on.")
    has_more = serializers.BooleanField(help_text="Whether there was more at the moment of asking.")


class EventsSerializer(PageSerializer):
    """Events, the oldest first."""

    results = EventSerializer(many=True)


class ExplanationSerializer(PageSerializer):
    """What happened and how the run stands, the events and the rest of the same moment."""

    state = serializers.ChoiceField(choices=ExecutionState.choices)
    now = serializers.CharField(help_text="How it stands now, and why; a sentence or two.")
    results = SentenceSerializer(many=True)


class LogsSerializer(PageSerializer):
    """Lines, the oldest first."""

    results = LogSerializer(many=True)


class CostsSerializer(PageSerializer):
    """What a run cost: all of it by kind, and attempt by attempt."""

    totals = AmountsField()
    results = CostSerializer(many=True)
