"""django-tenants' name for `migrate`."""

from tenants.management.commands.migrate import Command

__all__ = ["Command"]
