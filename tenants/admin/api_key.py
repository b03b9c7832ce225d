"""Admin of API keys: create, show once, revoke."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.models import ApiKey
from tenants.roles import Role
from tenants.services.api_keys import create_api_key, digest_of, revoke_api_key


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin[ApiKey]):
    """API keys. A key never changes: create a new one and revoke the old."""

    list_display = (
        "hint",
        "name",
        "tenant",
        "role",
        "blueprints",
        "created_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = ("tenant", "role")
    fields = ("tenant", "name", "role", "blueprints", "expires_at")
    actions = ("revoke",)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: a key never changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: a revoked key stays for the record."""
        return False

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Create the key and show it once."""
        key = create_api_key(
            tenant=obj.tenant.ref,
            name=obj.name,
            role=Role(obj.role),
            expires_at=obj.expires_at,
            blueprints=obj.blueprints,
            actor=f"user:{request.user.get_username()}",
        )
        obj.pk = ApiKey.objects.get(digest=digest_of(key)).pk
        self.message_user(request, f"The key, shown this once: {key}", messages.WARNING)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Require the right to change keys; revoking is the only change."""
        return request.user.has_perm("tenants.change_apikey")

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke the chosen keys."""
        for key in queryset.filter(revoked_at=None).select_related("tenant"):
            revoke_api_key(
                tenant=key.tenant.ref, hint=key.hint, actor=f"user:{request.user.get_username()}"
            )
