"""The executions app."""

from django.apps import AppConfig


class ExecutionsConfig(AppConfig):
    """What a tenant runs; its tables lie in the tenant's schema."""

    name = "executions"
