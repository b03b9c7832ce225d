"""URLs below a tenant's page in the admin."""

from typing import Any

from django.contrib import admin
from django.urls import URLPattern, path

from resources.admin.pages import (
    AddPage,
    ChangePage,
    DeletePage,
    DeleteSecretPage,
    ListPage,
    SetSecretPage,
    TenantPage,
)
from resources.services.definitions import UsersOf


def tenant_pages(users_of: UsersOf) -> list[URLPattern]:
    """Return the pages; `users_of` names the blueprints that use a definition."""
    return [
        _page("resources/", ListPage, "tenant-resources"),
        _page("resources/add/", AddPage, "tenant-resource-add"),
        _page("resources/<str:name>/change/", ChangePage, "tenant-resource-change"),
        _page(
            "resources/<str:name>/delete/", DeletePage, "tenant-resource-delete", users_of=users_of
        ),
        _page("secrets/set/", SetSecretPage, "tenant-secret-set"),
        _page("secrets/<str:name>/delete/", DeleteSecretPage, "tenant-secret-delete"),
    ]


def _page(route: str, page: type[TenantPage], name: str, **given: Any) -> URLPattern:
    return path(route, admin.site.admin_view(page.as_view(**given)), name=name)
