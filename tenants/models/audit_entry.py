"""The audit trail; never changed, and kept when its tenant is deleted."""

from django.db import models

from tenants.rights import DatabaseRights, HasRights


class AuditEntry(HasRights, models.Model):
    """One entry. Names its tenant by id and schema, without a foreign key: it outlives the tenant. Ids are unique."""

    database_rights = DatabaseRights(tenant=("SELECT", "INSERT"))

    at = models.DateTimeField(auto_now_add=True)
    tenant_id = models.BigIntegerField(null=True)
    tenant_schema = models.CharField(max_length=41, blank=True)
    actor = models.CharField(max_length=200, help_text="A user, an API key's hint, or 'system'.")
    action = models.CharField(max_length=100, help_text="Such as tenant.suspend")
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ("-id",)
        indexes = (models.Index(fields=("tenant_id", "-id"), name="audit_by_tenant"),)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.action} {self.subject}"
