"""The statuses of a tenant. Pure."""

from django.db.models import TextChoices


class TenantStatus(TextChoices):
    """What a tenant may do."""

    CREATING = "creating", "being created"  # a provisioner makes its schema and role
    ACTIVE = "active", "active"  # takes requests and runs
    SUSPENDED = "suspended", "suspended"  # takes no new work; what runs may end
    DELETING = "deleting", "being deleted"  # workers stop its runs
    PURGING = (
        "purging",
        "being purged",
    )  # nothing of it runs; a provisioner drops its schema and role

    @classmethod
    def open(cls) -> "frozenset[TenantStatus]":
        """For requests and submissions."""
        return frozenset({cls.ACTIVE})

    @classmethod
    def any(cls) -> "frozenset[TenantStatus]":
        """Those with a schema, for links and closes: what was begun may end."""
        return frozenset({cls.ACTIVE, cls.SUSPENDED, cls.DELETING})

    @classmethod
    def for_provisioner(cls) -> "frozenset[TenantStatus]":
        """Those that a provisioner acts on."""
        return frozenset({cls.CREATING, cls.PURGING})
