"""The resources app."""

from importlib import import_module

from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    """Resources and runtimes of runs; the tables are in the tenant's schema."""

    name = "resources"

    def ready(self) -> None:
        """Register the system checks."""
        import_module("resources.checks")
