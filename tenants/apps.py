"""The tenants app."""

from importlib import import_module

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Who the tenants are, and the way into one."""

    name = "tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        """Register the system checks, and hear of logins."""
        import_module("foundation.checks")
        import_module("tenants.logins.checks")
        import_module("tenants.logins.sessions").connect()
