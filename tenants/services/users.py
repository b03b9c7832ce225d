"""Administrators of the platform."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from foundation.errors import Conflict, InvalidInput, NotFound
from tenants.models import User
from tenants.scope import platform_scope
from tenants.services.audit import record

NAME_LENGTH = 150


class UserExists(Conflict):
    """The user name is taken."""

    code = "user_exists"


def ensure_admin(*, username: str, password: str) -> bool:
    """Create the first administrator; return False if there is one."""
    with platform_scope(), transaction.atomic():
        if User.objects.filter(is_superuser=True).exists():
            return False
        _create(username, password, actor="system")
    return True


def create_admin(*, username: str, password: str, actor: str) -> None:
    """Create an administrator of the platform."""
    if not 1 <= len(username) <= NAME_LENGTH or not username.isprintable() or " " in username:
        raise InvalidInput(
            f"username {username!r} is not usable: 1 to {NAME_LENGTH} characters without blanks.",
            field="username",
        )
    _check(password, User(username=username))
    with platform_scope(), transaction.atomic():
        if User.objects.filter(username=username).exists():
            raise UserExists(
                f"There is a user {username!r} already; 'isolane admins password' sets another password.",
                field="username",
            )
        _create(username, password, actor=actor)


def set_admin_password(*, username: str, password: str, actor: str) -> None:
    """Set an administrator's password; sessions of that user end."""
    with platform_scope(), transaction.atomic():
        user = User.objects.filter(username=username, is_superuser=True).first()
        if user is None:
            raise NotFound(f"There is no administrator {username!r}.", field="username")
        _check(password, user)
        user.set_password(password)
        user.save(update_fields=["password"])
        record(action="user.password", actor=actor, subject=username)


def _create(username: str, password: str, *, actor: str) -> None:
    User.objects.create_superuser(username=username, password=password)
    record(action="user.create", actor=actor, subject=username)


def _check(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="password") from None
