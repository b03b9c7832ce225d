"""The schema of each model's table."""

from typing import Any, cast

from django.conf import settings
from django.db import connections
from django_tenants.routers import TenantSyncRouter

from tenants.postgresql.base import DatabaseWrapper


class SchemaRouter(TenantSyncRouter):  # type: ignore[misc]  # django-tenants has no annotations
    """Shared apps in public, tenant apps in every other schema; through the owner's connection only."""

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        """Refuse tables of the wrong schema, and every alias but the owner's."""
        if db != "owner":
            return False
        public = cast("DatabaseWrapper", connections[db]).schema_name == "public"
        wanted = settings.SHARED_APPS if public else settings.TENANT_APPS
        return None if self.app_in_list(app_label, wanted) else False
