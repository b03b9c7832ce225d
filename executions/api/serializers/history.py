"""Events, log lines and costs of a run as JSON."""

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
MAX_NUMBER = 2**63 - 1  # the largest bigint of PostgreSQL


class SinceSerializer(StrictSerializer):
    """The position to read on from."""

    after = serializers.IntegerField(
        min_value=0,
        max_value=MAX_NUMBER,
        default=0,
        help_text="Number of the last entry already read; 0 for the beginning.",
    )
    page_size = serializers.IntegerField(min_value=1, max_value=MAX_PAGE, default=PAGE)


class LogsQuerySerializer(SinceSerializer):
    """The position to read on from, and a filter by step."""

    step = serializers.CharField(max_length=200, required=False, help_text="Path of a step.")


class EventSerializer(serializers.ModelSerializer[ExecutionEvent]):
    """An event of a run."""

    class Meta:
        model = ExecutionEvent
        fields = ("sequence", "at", "kind", "step", "data")
        read_only_fields = fields


class SentenceSerializer(serializers.ModelSerializer[ExecutionEvent]):
    """An event of a run as a sentence."""

    text = serializers.SerializerMethodField()

    class Meta:
        model = ExecutionEvent
        fields = ("sequence", "at", "kind", "step", "text")
        read_only_fields = fields

    def get_text(self, event: ExecutionEvent) -> str:
        """A sentence for people; programs should use `kind` and the event's data."""
        return describe_event(event.kind, event.step, event.data)


class LogSerializer(serializers.ModelSerializer[StepLog]):
    """A log line of a step, or of a library that it uses."""

    execution_id = serializers.SerializerMethodField()
    tenant_id = serializers.SerializerMethodField()

    class Meta:
        model = StepLog
        fields = (
            "number", "at", "level", "execution_id", "tenant_id", "step", "attempt", "message",
        )  # fmt: skip
        read_only_fields = fields

    def get_execution_id(self, line: StepLog) -> str:
        """Id of the run: exec_<uuid>."""
        return f"exec_{line.execution_id}"

    def get_tenant_id(self, _: StepLog) -> str:
        """Name of the tenant."""
        return str(self.context["tenant_id"])  # given by the view


class CostSerializer(serializers.ModelSerializer[CostRecord]):
    """Cost of one kind that one attempt reported."""

    amount = serializers.SerializerMethodField()

    class Meta:
        model = CostRecord
        fields = ("step", "attempt", "kind", "amount", "at")
        read_only_fields = fields

    def get_amount(self, record: CostRecord) -> str:
        """Amount as text, since floats are rounded."""
        return amount_text(record.amount)


class HistoryPageSerializer(serializers.Serializer[Any]):
    """A page of a history, read from the beginning."""

    after = serializers.IntegerField(help_text="Send this as `after` to read the next page.")
    has_more = serializers.BooleanField(
        help_text="True if there were more entries when this page was read."
    )


class EventsSerializer(HistoryPageSerializer):
    """Events of a run, the oldest first."""

    results = EventSerializer(many=True)


class ExplanationSerializer(HistoryPageSerializer):
    """The events of a run as sentences, and its status, read at the same moment."""

    state = serializers.ChoiceField(choices=ExecutionState.choices)
    now = serializers.CharField(
        help_text="Status of the run and the reason for it, in a sentence or two."
    )
    results = SentenceSerializer(many=True)


class LogsSerializer(HistoryPageSerializer):
    """Log lines of a run, the oldest first."""

    results = LogSerializer(many=True)


class CostsSerializer(HistoryPageSerializer):
    """Costs of a run: totals by kind, and the cost of each attempt."""

    totals = AmountsField()
    results = CostSerializer(many=True)
