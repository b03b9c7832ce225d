"""The base of what callers send."""

from typing import Any

from rest_framework import serializers

from foundation.problems import MAX_ERRORS, echo


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know: a misspelt option must not be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        """Check the names first."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields)
            raise serializers.ValidationError(
                {
                    echo(name): [f"There is no such field; known are {known}."]
                    for name in unknown[:MAX_ERRORS]
                }
            )
        return super().to_internal_value(data)
