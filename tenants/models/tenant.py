"""A customer: one PostgreSQL schema and one PostgreSQL role."""

from django.db import models
from django_tenants.models import TenantMixin

from tenants.isolation import Isolation
from tenants.rights import DatabaseRights, HasRights
from tenants.scope import TenantRef
from tenants.statuses import TenantStatus


class Tenant(HasRights, TenantMixin):  # type: ignore[misc]  # django-tenants has no annotations
    """Made by tenants.provisioning, never by save(): the row, the schema and the role come and go together."""

    auto_create_schema = False
    auto_drop_schema = False
    database_rights = DatabaseRights(login=("SELECT",))

    schema_name = models.CharField("schema", max_length=41, unique=True)
    name = models.CharField(max_length=200)
    status = models.CharField(
        max_length=16, choices=TenantStatus.choices, default=TenantStatus.ACTIVE
    )
    trusted = models.BooleanField(
        default=False, help_text="May share a long-lived process with other trusted tenants' runs."
    )
    required_isolation = models.CharField(
        max_length=16,
        choices=Isolation.choices,
        default=Isolation.SHARED,
        help_text="The weakest isolation this tenant's runs may have.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

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
        )

    def __str__(self) -> str:
        return str(self.schema_name)

    def __enter__(self) -> "Tenant":
        raise TypeError(
            "django-tenants' 'with tenant:' mixes threads up; use tenants.scope.tenant_scope"
        )

    @property
    def ref(self) -> TenantRef:
        """What it takes to enter this tenant."""
        return TenantRef(id=self.pk, schema=self.schema_name, status=TenantStatus(self.status))
