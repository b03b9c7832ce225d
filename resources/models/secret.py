"""A secret of a tenant, encrypted; nothing ever shows it again."""

from django.db import models


class Secret(models.Model):
    """Sealed for its tenant and name: copied to another row, it does not open."""

    name = models.CharField(max_length=63, unique=True)
    sealed = models.BinaryField()
    version = models.IntegerField(default=1, help_text="How often it was set.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=200)

    class Meta:
        indexes = (models.Index(fields=("-created_at", "id"), name="secret_newest"),)

    def __str__(self) -> str:
        return self.name
