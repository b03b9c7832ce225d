"""Administrators of the platform."""

import pytest
from django.contrib.auth import authenticate

from foundation.errors import InvalidInput, IsolaneError
from tenants.models import AuditEntry, User
from tenants.scope import platform_scope
from tenants.services.users import create_admin, ensure_admin, set_admin_password

FIRST, SECOND = "correct horse battery", "staple of another kind"


def test_the_first_administrator_is_made_once(database: None) -> None:
    assert ensure_admin(username="admin", password="a long password")
    assert not ensure_admin(username="other", password="another password")
    assert [user.username for user in User.objects.all()] == ["admin"]
    assert authenticate(username="admin", password="a long password") is not None


def test_administrators_are_made_and_get_other_passwords(database: None) -> None:
    create_admin(username="ada", password=FIRST, actor="tests")
    set_admin_password(username="ada", password=SECOND, actor="tests")
    assert authenticate(username="ada", password=FIRST) is None
    found = authenticate(username="ada", password=SECOND)
    assert found is not None
    assert (found.is_staff, found.is_superuser) == (True, True)
    with platform_scope():
        told = AuditEntry.objects.order_by("id").values_list("action", "actor", "subject")
        made = [entry for entry in told if entry[1] == "tests"]
    assert made == [("user.create", "tests", "ada"), ("user.password", "tests", "ada")]


@pytest.mark.parametrize(
    ("username", "password", "code"),
    [
        ("ada", FIRST, "user_exists"),
        ("a b", FIRST, "invalid_input"),
        ("", FIRST, "invalid_input"),
        ("bob", "short", "invalid_input"),
        ("bob", "password1234", "invalid_input"),
    ],
)
def test_what_does_not_do_makes_nobody(
    database: None, username: str, password: str, code: str
) -> None:
    create_admin(username="ada", password=FIRST, actor="tests")
    with pytest.raises(IsolaneError) as refused:
        create_admin(username=username, password=password, actor="tests")
    assert refused.value.code == code
    assert [user.username for user in User.objects.all()] == ["ada"]


def test_only_administrators_get_a_password_so(database: None) -> None:
    with platform_scope():
        User.objects.create_user("member", password=FIRST)
    with pytest.raises(IsolaneError, match="no administrator 'member'"):
        set_admin_password(username="member", password=SECOND, actor="tests")
    create_admin(username="ada", password=FIRST, actor="tests")
    with pytest.raises(InvalidInput, match="too short"):
        set_admin_password(username="ada", password="short", actor="tests")
