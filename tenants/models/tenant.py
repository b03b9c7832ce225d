"""A customer: one PostgreSQL schema and one PostgreSQL role."""

from django.db import models
from django_tenants.models import TenantMixin

from tenants.isolation import Isolation
from tenants.rights import DatabaseRights, HasRights
from tenants.scope import TenantRef
from tenants.statuses import TenantStatus


class Tenant(HasRights, TenantMixin):  # type: ignore[misc]  # django-tenants has no annotations
    """A row is created by a service; it asks a provisioner to create, migrate or drop schema and role."""

    auto_create_schema = False
    auto_drop_schema = False
    database_rights = DatabaseRights(
        login=("SELECT",),
        worker=(
            "SELECT",
            "UPDATE (status, provisioning_error, provisioning_failures, provisioning_after)",
        ),
        # They stop the runs of tenants that are being deleted, and may not start a deletion.
        worker_changes=f"status IN ('{TenantStatus.DELETING}', '{TenantStatus.PURGING}')",
    )

    schema_name = models.CharField("schema", max_length=41, unique=True)
    name = models.CharField(max_length=200)
    status = models.CharField(
        max_length=16, choices=TenantStatus.choices, default=TenantStatus.CREATING
    )
    trusted = models.BooleanField(
        default=False,
        help_text="Its runs may have the level shared, where they are the worker's own user.",
    )
    required_isolation = models.CharField(
        max_length=16,
        choices=Isolation.choices,
        default=Isolation.PROCESS,
        help_text="The weakest isolation that its runs may have; shared counts for trusted tenants only.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    schema_version = models.CharField(
        max_length=64,
        blank=True,
        help_text="Hash of the migrations that its schema has; empty while it has no schema.",
    )
    provisioning_error = models.CharField(
        max_length=500,
        blank=True,
        help_text="Reason why it could not be created, migrated or deleted.",
    )
    provisioning_failures = models.PositiveIntegerField(default=0)
    provisioning_after = models.DateTimeField(null=True, help_text="Earliest time of the next try.")

    class Meta:
        ordering = ("schema_name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(status__in=TenantStatus.values), name="tenant_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(schema_name__regex=r"^[a-z][a-z0-9_]{1,40}$"),
                name="tenant_schema_name_valid",
            ),
        )
        indexes = (
            models.Index(
                fields=("id",),
                name="tenant_deleting",
                condition=models.Q(status=TenantStatus.DELETING),
            ),
            models.Index(
                fields=("id",),
                name="tenant_for_provisioner",
                condition=models.Q(status__in=sorted(TenantStatus.for_provisioner())),
            ),
            models.Index(fields=("schema_version",), name="tenant_schema_version"),
        )

    def __str__(self) -> str:
        return str(self.schema_name)

    def __enter__(self) -> "Tenant":
        raise TypeError(
            "django-tenants' 'with tenant:' mixes threads up; use tenants.scope.tenant_scope"
        )

    @property
    def ref(self) -> TenantRef:
        """The value needed to enter this tenant."""
        return TenantRef(id=self.pk, schema=self.schema_name, status=TenantStatus(self.status))
