"""`manage.py migrate` for every schema, as the owner; django-tenants' own command does not know the owner."""

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrate

from tenants.provisioning import migrate


class Command(DjangoMigrate):
    """The same as `isolane migrate`."""

    help = "Bring public, the template and every tenant's schema up to date."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take no arguments: a part of the schemas cannot be migrated."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate all schemas."""
        migrate(lambda schema: self.stdout.write(f"  {schema}"))
