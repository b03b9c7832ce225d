"""Admin of people and groups, for superusers only: a person who changes rights could get all of them."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from tenants.models import User


class SuperusersOnly:
    """Hides a page from other staff, whatever rights they have."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the app to superusers."""
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let superusers view."""
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let superusers add."""
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let superusers change, also passwords."""
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let superusers delete."""
        return _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_superuser


@admin.register(User)
class PlatformUserAdmin(SuperusersOnly, UserAdmin[User]):
    """People."""


# Django registers its own when the module above is imported.
admin.site.unregister(Group)


@admin.register(Group)
class PlatformGroupAdmin(SuperusersOnly, GroupAdmin):
    """Groups of rights."""
