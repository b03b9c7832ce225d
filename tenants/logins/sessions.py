"""Effects of a login: the session of staff is short, and their logins are in the audit trail."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest
from django.utils import timezone

from tenants.logins.addresses import address_of
from tenants.models import User
from tenants.scope import platform_scope
from tenants.services.audit import record

STAFF_SESSION = timedelta(hours=8)  # after the login, whatever is done meanwhile


def after_login(*, request: HttpRequest, user: User, **_: Any) -> None:
    """Shorten the session of staff and record their login."""
    if not user.is_staff:
        return
    request.session.set_expiry(timezone.now() + STAFF_SESSION)
    with platform_scope():
        record(
            action="login.staff",
            actor=f"user:{user.get_username()}",
            subject=f"address:{address_of(request)}",
        )


def connect() -> None:
    """Register the receiver of logins."""
    user_logged_in.connect(after_login, dispatch_uid="tenants.logins.sessions")
