"""What people are asked and answer, on the wire."""

from uuid import UUID

from rest_framework import serializers

from executions.models import Approval, ApprovalState
from executions.selectors.executions import parse_id
from executions.services.approvals import MAX_COMMENT
from foundation.errors import InvalidInput
from foundation.serializers import StrictSerializer


class ApprovalsQuerySerializer(StrictSerializer):
    """What a list can be narrowed by."""

    state = serializers.ChoiceField(choices=ApprovalState.choices, required=False)
    blueprint = serializers.CharField(max_length=100, required=False)
    execution = serializers.CharField(max_length=60, required=False, help_text="exec_<uuid>")
    page_size = serializers.IntegerField(min_value=1, max_value=200, required=False)
    cursor = serializers.CharField(required=False)

    def validate_execution(self, value: str) -> UUID:
        """Refuse under the name that the caller used."""
        try:
            return parse_id(value)
        except InvalidInput as error:
            raise serializers.ValidationError(error.detail) from None


class TrueOrFalse(serializers.BooleanField):
    """JSON's own, and nothing that might be meant as one."""

    def to_internal_value(self, data: object) -> bool:
        """Refuse texts and numbers."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Text(serializers.CharField):
    """JSON's own."""

    def to_internal_value(self, data: object) -> str:
        """Refuse numbers."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class AnswerSerializer(StrictSerializer):
    """What a person answers."""

    approved = TrueOrFalse()
    comment = Text(max_length=MAX_COMMENT, required=False, default="", allow_blank=True)


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    """One question of a run; what is sensitive is masked."""

    execution = serializers.CharField(source="execution.public_id")
    blueprint = serializers.CharField(source="execution.blueprint_version.blueprint.name")

    class Meta:
        model = Approval
        fields = (
            "execution", "number", "blueprint", "step", "prompt", "state", "asked_at", "expires_at", "answered_at",
            "answered_by", "comment",
        )  # fmt: skip
        read_only_fields = fields
