"""The definition of a tenant's resource: its type, its config and references to its secrets."""

from django.db import models


class DefinitionScope(models.TextChoices):
    """The widest scope that a blueprint may give a handle."""

    STEP = "step"  # each step opens its own
    EXECUTION = "execution"  # all steps of a run may share one


class ResourceDefinition(models.Model):
    """A definition; it holds references to secrets, never their values."""

    name = models.CharField(max_length=63, unique=True)
    type = models.CharField(max_length=40, help_text="Never changes.")
    config = models.JSONField(default=dict, help_text="The fields that its type's provider reads.")
    secrets = models.JSONField(
        default=dict, help_text="The provider's name of each secret, with the reference to it."
    )
    scope = models.TextField(choices=DefinitionScope.choices, default=DefinitionScope.STEP)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=200)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(scope__in=DefinitionScope.values), name="definition_scope_known"
            ),
        )
        indexes = (models.Index(fields=("-created_at", "id"), name="definition_newest"),)

    def __str__(self) -> str:
        return self.name
