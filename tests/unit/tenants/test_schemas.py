"""Requirements on the migrations of tenants' schemas."""

from django.conf import settings
from django.db.migrations.loader import MigrationLoader


def test_migrations_of_tenants_can_share_one_transaction() -> None:
    """A tenant is migrated whole or not at all, so none may ask for transactions of its own."""
    found = MigrationLoader(None).disk_migrations or {}
    of_tenants = {key: one for key, one in found.items() if key[0] in settings.TENANT_APPS}
    assert len(of_tenants) > 5
    assert [key for key, one in of_tenants.items() if not one.atomic] == []
