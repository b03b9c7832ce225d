"""People and groups. They hold the rights, so whoever changes them could give himself all: for superusers only."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from tenants.models import User


class SuperusersOnly:
    """What other staff neither see nor change, whatever rights they were given."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show it at all."""
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """See."""
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Make."""
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Change, also passwords."""
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Delete."""
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
