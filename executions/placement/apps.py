"""The placement app."""

from django.apps import AppConfig


class PlacementConfig(AppConfig):
    """The queue of all tenants and the workers that serve it; its tables lie in public."""

    name = "executions.placement"
    label = "placement"
