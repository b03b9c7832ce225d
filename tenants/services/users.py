"""People who run the platform."""

from django.db import transaction

from tenants.models import User
from tenants.scope import platform_scope
from tenants.services.audit import record


def ensure_admin(*, username: str, password: str) -> bool:
    """Make the first administrator; does nothing, and says so, once there is one."""
    with platform_scope(), transaction.atomic():
        if User.objects.filter(is_superuser=True).exists():
            return False
        User.objects.create_superuser(username=username, password=password)
        record(action="user.create", actor="system", subject=username)
    return True
