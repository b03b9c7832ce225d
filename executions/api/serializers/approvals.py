"""Questions of runs to people, and their answers, as JSON."""

from typing import ClassVar
from uuid import UUID

from rest_framework import serializers

from executions.models import Approval, ApprovalState
from executions.selectors.executions import parse_id
from executions.services.approvals import MAX_COMMENT
from foundation.errors import InvalidInput
from foundation.serializers import (
    PageQuerySerializer,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
)


class ApprovalsQuerySerializer(PageQuerySerializer):
    """Filters of the list of questions."""

    state = serializers.ChoiceField(choices=ApprovalState.choices, required=False)
    blueprint = serializers.CharField(
        max_length=100, required=False, help_text="Name of a blueprint."
    )
    execution = serializers.CharField(
        max_length=60, required=False, help_text="Id of a run: exec_<uuid>."
    )

    def validate_execution(self, value: str) -> UUID:
        """Parse the id; a refusal names this field."""
        try:
            return parse_id(value)
        except InvalidInput as error:
            raise serializers.ValidationError(error.detail) from None


class AnswerSerializer(StrictSerializer):
    """The answer of a person to a question."""

    approved = StrictBooleanField()
    comment = StrictCharField(max_length=MAX_COMMENT, required=False, default="", allow_blank=True)


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    """A question of a run to a person. Sensitive values are masked."""

    execution = serializers.CharField(source="execution.public_id")
    blueprint = serializers.CharField(source="execution.blueprint_version.blueprint.name")

    class Meta:
        model = Approval
        fields = (
            "execution", "number", "blueprint", "step", "prompt", "state", "asked_at", "expires_at", "answered_at",
            "answered_by", "comment",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs: ClassVar = {
            "answered_at": {"help_text": "Time of the answer, the expiry or the withdrawal."}
        }
