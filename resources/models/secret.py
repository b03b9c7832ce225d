"""A secret of a tenant, encrypted; it is never shown again."""

from django.db import models


class Secret(models.Model):
    """A stored secret, sealed for its tenant and name: copied to another row, it cannot be decrypted."""

    name = models.CharField(max_length=63, unique=True)
    sealed = models.BinaryField()
    version = models.IntegerField(default=1, help_text="The number of times that it was set.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=200)

    class Meta:
        indexes = (models.Index(fields=("-created_at", "id"), name="secret_newest"),)

    def __str__(self) -> str:
        return self.name
