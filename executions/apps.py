"""The executions app."""

from importlib import import_module

from django.apps import AppConfig


class ExecutionsConfig(AppConfig):
    """Blueprints and runs; the tables are in the tenant's schema."""

    name = "executions"

    def ready(self) -> None:
        """Register the system checks."""
        import_module("executions.worker.checks")
