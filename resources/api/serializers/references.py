"""References to secrets as JSON."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class ReferencesField(serializers.JSONField):
    """A JSON object from names of the type's secrets to texts, such as references."""
