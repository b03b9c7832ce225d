"""The tenants app."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Who the tenants are, and the way into one."""

    name = "tenants"
    verbose_name = "Tenants"
