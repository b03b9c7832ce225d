"""URLs below /api/v1/."""

from django.urls import URLPattern, path

from resources.api.views import (
    ResourcesView,
    ResourceTypesView,
    ResourceView,
    SecretsView,
    SecretView,
)
from resources.services.definitions import UsersOf


def resource_urls(users_of: UsersOf) -> list[URLPattern]:
    """The routes; deleting a definition asks which blueprints use it."""
    one = ResourceView.as_view(users_of=users_of)
    return [
        path("resources", ResourcesView.as_view(), name="resources"),
        path("resources/<str:name>", one, name="resource"),
        path("resource-types", ResourceTypesView.as_view(), name="resource-types"),
        path("secrets", SecretsView.as_view(), name="secrets"),
        path("secrets/<str:name>", SecretView.as_view(), name="secret"),
    ]
