"""The statuses of a tenant. Pure."""

from django.db.models import TextChoices


class TenantStatus(TextChoices):
    """What a tenant may do."""

    ACTIVE = "active"  # takes requests and runs
    SUSPENDED = "suspended"  # takes no new work; what runs may end
    DELETING = "deleting"  # its runs are being stopped, then its data is dropped

    @classmethod
    def open(cls) -> "frozenset[TenantStatus]":
        """For requests and submissions."""
        return frozenset({cls.ACTIVE})

    @classmethod
    def any(cls) -> "frozenset[TenantStatus]":
        """For links and closes: what was begun may end."""
        return frozenset(cls)
