"""django-tenants' name for the same."""

from tenants.management.commands.migrate import Command

__all__ = ["Command"]
