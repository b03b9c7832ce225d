"""The first administrator."""

from django.contrib.auth import authenticate

from tenants.models import User
from tenants.services.users import ensure_admin


def test_the_first_administrator_is_made_once(database: None) -> None:
    assert ensure_admin(username="admin", password="a long password")
    assert not ensure_admin(username="other", password="another password")
    assert [user.username for user in User.objects.all()] == ["admin"]
    assert authenticate(username="admin", password="a long password") is not None
