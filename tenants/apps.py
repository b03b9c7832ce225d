"""The tenants app."""

from importlib import import_module

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Tenants, their members and keys, and the scope of each."""

    name = "tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        """Register the system checks and the signals of logins."""
        import_module("foundation.checks")
        import_module("tenants.checks")
        import_module("tenants.logins.checks")
        import_module("tenants.logins.sessions").connect()
