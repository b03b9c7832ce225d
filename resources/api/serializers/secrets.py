"""Secrets as JSON; no response ever holds a value."""

from typing import ClassVar

from rest_framework import serializers

from foundation.serializers import StrictCharField, StrictSerializer
from resources.models import Secret
from resources.resolvers.base import MAX_BYTES, MIN_CHARACTERS


class ValueSerializer(StrictSerializer):
    """The value of a secret."""

    value = StrictCharField(
        write_only=True,
        trim_whitespace=False,
        help_text=f"At least {MIN_CHARACTERS} characters, at most {MAX_BYTES} bytes. It is never shown again.",
    )


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """A secret without its value."""

    class Meta:
        model = Secret
        fields = ("name", "version", "created_at", "updated_at", "updated_by")
        read_only_fields = fields
        extra_kwargs: ClassVar = {"version": {"help_text": "Number of times the value was set."}}
