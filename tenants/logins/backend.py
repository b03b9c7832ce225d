"""Who signs in with a password."""

from typing import Any

from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.hashers import make_password, verify_password
from django.http import HttpRequest

from tenants.logins.attempts import with_password
from tenants.logins.hashing import QUEUE
from tenants.models import User
from tenants.scope import give_back_connection


class PasswordBackend(ModelBackend):
    """Django's, with limits: for tries that come with a request, and for hashing in all."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """The user, if the password is right; unknown users take as long as wrong passwords."""
        if username is None or password is None:
            return None
        if request is None:  # a command, which has no address
            return self._check(username, password)
        return with_password(request, username, lambda: self._check(username, password))

    # ModelBackend's own hashes without a limit; this one calls the above.
    aauthenticate = BaseBackend.aauthenticate  # type: ignore[assignment]  # names them in kwargs

    def _check(self, username: str, password: str) -> User | None:
        with QUEUE.place():
            user = User.objects.filter(username=username).first()
            give_back_connection()  # nobody waits for a hash with one
            is_right, anew = QUEUE.run(lambda: _compare(password, user.password if user else None))
        if user is None or not is_right or not self.user_can_authenticate(user):
            return None
        if anew:
            user.password = anew
            user.save(update_fields=["password"])
        return user


def _compare(password: str, encoded: str | None) -> tuple[bool, str]:
    """Whether it is the one that was encoded, and how it is to be stored from now on, if otherwise than before."""
    if encoded is None:
        make_password(password)
        return False, ""
    is_right, is_outdated = verify_password(password, encoded)
    return is_right, make_password(password) if is_right and is_outdated else ""
