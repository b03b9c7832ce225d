"""URLs below /api/v1/."""

from django.urls import URLPattern, path

from resources.api.views.definitions import DefinitionsView, DefinitionView
from resources.api.views.secrets import SecretsView, SecretView
from resources.api.views.types import ResourceTypesView
from resources.services.definitions import UsersOf


def resource_urls(users_of: UsersOf) -> list[URLPattern]:
    """Return the routes; `users_of` names the blueprints that use a definition."""
    one = DefinitionView.as_view(users_of=users_of)
    return [
        path("resources", DefinitionsView.as_view(), name="resources"),
        path("resources/<str:name>", one, name="resource"),
        path("resource-types", ResourceTypesView.as_view(), name="resource-types"),
        path("secrets", SecretsView.as_view(), name="secrets"),
        path("secrets/<str:name>", SecretView.as_view(), name="secret"),
    ]
