"""A named workflow; each published version is immutable."""

from django.db import models


class Blueprint(models.Model):
    """The name under which versions are published."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class BlueprintVersion(models.Model):
    """One published document; the same content is never stored twice."""

    blueprint = models.ForeignKey(
        Blueprint, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    content = models.JSONField()
    content_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("blueprint", "number"), name="blueprint_version_number"
            ),
            models.UniqueConstraint(
                fields=("blueprint", "content_hash"), name="blueprint_version_content"
            ),
        )

    def __str__(self) -> str:
        return f"{self.blueprint}@{self.number}"
