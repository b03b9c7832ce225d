"""tenants.checks: web, workers and the owner log in as different roles to the same database."""

from dataclasses import replace

import pytest
from django.conf import settings
from django.core.checks import CheckMessage

from tenants.checks import (
    OTHER_DATABASE,
    OWNER_IS_LOGIN,
    WORKER_IS_WEB,
    check_database_names,
    check_logins,
)


def messages() -> list[CheckMessage]:
    return [*check_logins(None), *check_database_names(None)]


def found() -> list[tuple[str | None, str]]:
    return [(message.id, str(message.msg).partition(" ")[0]) for message in messages()]


def use(
    monkeypatch: pytest.MonkeyPatch,
    *,
    web: str = "login",
    owner: str = "owner",
    worker: str = "postgresql://worker:pw@db/isolane",
    owned: str = "isolane",
) -> None:
    """Set the logins of a process that knows all three."""
    databases = {
        "default": {"USER": web, "NAME": "isolane"},
        "owner": {"USER": owner, "NAME": owned},
    }
    # Not by the fixture `settings`, since Django would look at its connections.
    monkeypatch.setattr(settings, "DATABASES", databases)
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, database_worker_url=worker))


def test_the_settings_of_tests_pass() -> None:
    assert found() == []


@pytest.mark.parametrize("worker", ["", "postgresql://worker:pw@db/isolane", "postgresql://w@db"])
def test_three_logins_pass(monkeypatch: pytest.MonkeyPatch, worker: str) -> None:
    use(monkeypatch, worker=worker)
    assert found() == []


def test_a_process_without_the_owner_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, worker="")
    monkeypatch.delitem(settings.DATABASES, "owner")
    assert found() == []


def test_the_owner_is_not_a_login_of_web(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, web="owner")
    assert found() == [(OWNER_IS_LOGIN, "DATABASE_URL")]


def test_the_owner_is_not_a_login_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, worker="postgresql://owner:pw@db/isolane")
    assert found() == [(OWNER_IS_LOGIN, "DATABASE_WORKER_URL")]


def test_workers_with_the_login_of_web_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, worker="postgresql://login:pw@db/isolane")
    assert found() == [(WORKER_IS_WEB, "DATABASE_WORKER_URL")]


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"owned": "other"}, "DATABASE_OWNER_URL"),
        ({"worker": "postgresql://worker:pw@db/other"}, "DATABASE_WORKER_URL"),
    ],
)
def test_another_database_is_an_error(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], variable: str
) -> None:
    use(monkeypatch, **changes)
    assert found() == [(OTHER_DATABASE, variable)]


def test_no_message_holds_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, web="owner", worker="postgresql://owner:hunter2@db/other")
    assert len(found()) == 4
    assert not any("hunter2" in str(message) for message in messages())
