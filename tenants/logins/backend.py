"""Sign-in with a password."""

from typing import Any

from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.hashers import make_password, verify_password
from django.http import HttpRequest

from tenants.logins.attempts import with_password
from tenants.logins.hashing import QUEUE
from tenants.models import User
from tenants.scope import give_back_connection


class PasswordBackend(ModelBackend):
    """Django's backend, with limits on tries that come with a request and on hashing in all."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Return the user if the password is right; unknown users take as long as wrong passwords."""
        if username is None or password is None:
            return None
        if request is None:  # a command, which has no address
            return self._check(username, password)
        return with_password(request, username, lambda: self._check(username, password))

    # ModelBackend's own version hashes without a limit; this one calls authenticate().
    aauthenticate = BaseBackend.aauthenticate  # type: ignore[assignment]  # names them in kwargs

    def _check(self, username: str, password: str) -> User | None:
        with QUEUE.place():
            user = User.objects.filter(username=username).first()
            give_back_connection()  # no request keeps one while it waits for a hash
            is_right, rehashed = QUEUE.run(
                lambda: _compare(password, user.password if user else None)
            )
        if user is None or not is_right or not self.user_can_authenticate(user):
            return None
        if rehashed:
            user.password = rehashed
            user.save(update_fields=["password"])
        return user


def _compare(password: str, encoded: str | None) -> tuple[bool, str]:
    """Return True if the password is right, and its new hash if the stored one is outdated."""
    if encoded is None:
        make_password(password)
        return False, ""
    is_right, is_outdated = verify_password(password, encoded)
    return is_right, make_password(password) if is_right and is_outdated else ""
