"""Resource definitions as JSON."""

from typing import ClassVar

from rest_framework import serializers

from foundation.serializers import ObjectField, StrictSerializer
from resources.api.serializers.references import ReferencesField
from resources.models import DefinitionScope, ResourceDefinition

NAME_LENGTH = (
    200  # the service checks names; this bounds the length of a name that an error repeats
)


class ChangedDefinitionSerializer(StrictSerializer):
    """A definition without its name."""

    type = serializers.CharField(max_length=NAME_LENGTH)
    config = ObjectField(default=dict, help_text="Fields of the type; see GET /resource-types.")
    secrets = ReferencesField(
        default=dict, help_text="References: the name of a stored secret, env:NAME or file:name."
    )
    scope = serializers.ChoiceField(choices=DefinitionScope.choices, default=DefinitionScope.STEP)


class NewDefinitionSerializer(ChangedDefinitionSerializer):
    """A definition."""

    name = serializers.CharField(max_length=NAME_LENGTH)


class DefinitionSerializer(serializers.ModelSerializer[ResourceDefinition]):
    """A definition. It shows references to secrets, never their values."""

    config = ObjectField()
    secrets = ReferencesField()

    class Meta:
        model = ResourceDefinition
        fields = (
            "name", "type", "config", "secrets", "scope", "created_at", "created_by", "updated_at", "updated_by",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs: ClassVar = {"type": {"help_text": "The type never changes."}}
