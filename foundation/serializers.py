"""Serializers and fields that the APIs of several apps share."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.pagination import NewestFirst
from foundation.problems import MAX_ERRORS, echo


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses unknown fields: a misspelt option must not be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        """Refuse unknown names, then validate the rest."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields)
            raise serializers.ValidationError(
                {
                    echo(name): [f"There is no such field; known are {known}."]
                    for name in unknown[:MAX_ERRORS]
                }
            )
        return super().to_internal_value(data)


class PageQuerySerializer(StrictSerializer):
    """Query parameters of a list with pages."""

    page_size = serializers.IntegerField(
        min_value=1, max_value=NewestFirst.max_page_size, required=False
    )
    cursor = serializers.CharField(required=False)


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """A JSON object."""


class StrictCharField(serializers.CharField):
    """A JSON string; DRF's own field would also take numbers."""

    def to_internal_value(self, data: object) -> str:
        """Refuse everything that is not a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean; DRF's own field would also take strings and numbers."""

    def to_internal_value(self, data: object) -> bool:
        """Refuse everything that is not true or false."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
