"""The tenants app."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Who the tenants are, and the way into one."""

    name = "tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        """Have the platform's settings checked."""
        from orchestrator.core import checks  # noqa: F401, PLC0415 - registers itself
