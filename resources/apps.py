"""The resources app."""

from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    """The resources of runs and the runtimes; its tables are in the tenant's schema."""

    name = "resources"
