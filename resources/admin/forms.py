"""Forms for operators; the services check the values."""

from typing import Any

from django import forms

from foundation.errors import IsolaneError
from resources.models import DefinitionScope, ResourceDefinition
from resources.resolvers.base import MIN_CHARACTERS
from resources.services.definition_rules import DefinitionInput
from resources.services.types import resource_types


class ServiceForm(forms.Form):
    """A form that shows an error of a service at the field that it names."""

    def refuse(self, error: IsolaneError) -> None:
        """Add an error of a service."""
        named = (error.field or "").partition(".")[0].partition("[")[0]
        self.add_error(named if named in self.fields else None, error.detail)


class DefinitionForm(ServiceForm):
    """A definition."""

    name = forms.CharField(max_length=200, strip=False)
    type = forms.ChoiceField()
    config = forms.JSONField(
        required=False, initial=dict, help_text="Fields of the type. Never a secret."
    )
    secrets = forms.JSONField(
        required=False,
        initial=dict,
        help_text='References to secrets, such as {"password": "billing-password"}; also env:NAME or file:name.',
    )
    scope = forms.ChoiceField(choices=DefinitionScope.choices, initial=DefinitionScope.STEP)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        types = [found.type for found in resource_types()]
        self.fields["type"] = forms.ChoiceField(choices=[(name, name) for name in types])

    def wanted(self) -> DefinitionInput:
        """Return the definition that was entered."""
        given = self.cleaned_data
        empty = {name: given[name] or {} for name in ("config", "secrets")}
        return DefinitionInput(**{**given, **empty})


class ChangeDefinitionForm(DefinitionForm):
    """An existing definition; its name and type cannot change."""

    def __init__(self, *args: Any, definition: ResourceDefinition, **kwargs: Any) -> None:
        fields = ("name", "type", "config", "secrets", "scope")
        initial = {name: getattr(definition, name) for name in fields}
        super().__init__(*args, initial=initial, **kwargs)
        self.fields["type"] = forms.CharField(disabled=True)
        self.fields["name"].disabled = True


class SecretForm(ServiceForm):
    """A secret; no page ever holds its value."""

    name = forms.CharField(max_length=200, strip=False)
    value = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text=f"At least {MIN_CHARACTERS} characters. Replaces the value of an existing secret.",
    )


class NoForm(ServiceForm):
    """A confirmation without fields."""
