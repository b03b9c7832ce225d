"""The resources app."""

from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    """What a run uses and where it lives; its tables lie in the tenant's schema."""

    name = "resources"
