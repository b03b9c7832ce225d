"""`isolane admins`."""

from django.contrib.auth import authenticate

from tests.integration.orchestrator.cli.conftest import Isolane

FIRST, SECOND = "correct horse battery", "staple of another kind"


def test_an_administrator_is_made_and_gets_another_password(isolane: Isolane) -> None:
    made = isolane("admins", "create", "ada", typed=f"{FIRST}\n{FIRST}\n")
    assert (made.exit_code, FIRST in made.output) == (0, False)
    assert authenticate(username="ada", password=FIRST) is not None
    changed = isolane("admins", "password", "ada", typed=f"{SECOND}\n{SECOND}\n")
    assert changed.exit_code == 0
    assert authenticate(username="ada", password=SECOND) is not None
