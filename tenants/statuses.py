"""The statuses of a tenant. Pure."""

from django.db.models import TextChoices


class TenantStatus(TextChoices):
    """The life of a tenant, and what it may do."""

    CREATING = "creating", "being created"  # a provisioner creates its schema and role
    ACTIVE = "active", "active"  # accepts requests and runs
    SUSPENDED = "suspended", "suspended"  # accepts no new work; active runs may end
    DELETING = "deleting", "being deleted"  # workers stop its runs
    PURGING = (
        "purging",
        "being purged",
    )  # no run is left; a provisioner drops its schema and role

    @classmethod
    def open(cls) -> "frozenset[TenantStatus]":
        """Statuses that accept requests and submissions."""
        return frozenset({cls.ACTIVE})

    @classmethod
    def any(cls) -> "frozenset[TenantStatus]":
        """Statuses with a schema, for links and closes: a run that has begun may end."""
        return frozenset({cls.ACTIVE, cls.SUSPENDED, cls.DELETING})

    @classmethod
    def for_provisioner(cls) -> "frozenset[TenantStatus]":
        """Statuses that a provisioner acts on."""
        return frozenset({cls.CREATING, cls.PURGING})
