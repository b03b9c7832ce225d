"""While PostgreSQL is away every page that needs it answers 503, whatever was under way, and works again afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.signals import user_logged_in
from django.db import connection
from django.test import Client

from executions.selectors.executions import executions
from tenants.models import User
from tenants.postgresql.pool import Pool
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope
from tests.integration.tenants.test_lost_connections import Server, hang_up
from tests.integration.tenants.web import host_of, member, problem, program, staff, visitor

RUNS = "/api/v1/executions"
SIGN_IN = {"username": "ada", "password": "a long password"}
Answer = Callable[[], Any]
Away = Callable[[], None]


@pytest.fixture
def away(superuser: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    """Makes the server go away until the test ends: connections are gone, and no others can be opened."""

    def go() -> None:
        monkeypatch.setattr(Pool, "_resolve_kwargs", elsewhere)
        hang_up(superuser)

    def elsewhere(pool: Pool) -> dict[str, Any]:
        assert isinstance(pool.kwargs, dict)
        return {**pool.kwargs, "host": "/nowhere"}

    yield go
    monkeypatch.undo()
    connection.close()


@pytest.fixture
def ada(acme: TenantRef) -> None:
    """Somebody who can sign in."""
    with platform_scope():
        User.objects.create_superuser(username="ada", password="a long password")


def answering(client: Client) -> Client:
    """As a server does, which answers also when something was raised."""
    client.raise_request_exception = False
    return client


def pages(tenant: TenantRef) -> list[Answer]:
    """One request of each kind that needs the database."""
    at_base, at_home = program(tenant), program(tenant, host=host_of(tenant))
    person, operator = member(tenant, Role.VIEWER), answering(staff())
    stranger, guest = answering(visitor()), answering(visitor(host_of(tenant)))
    submission = {"blueprint": "flow"}
    return [
        lambda: at_base.get(RUNS),
        lambda: at_base.get("/api/v1/resources"),
        lambda: at_base.post(RUNS, submission, content_type="application/json"),
        lambda: at_home.get(RUNS),
        lambda: person.get(RUNS),
        lambda: operator.get("/admin/"),
        lambda: operator.get("/admin/tenants/tenant/"),
        lambda: stranger.post("/login/", SIGN_IN),
        lambda: stranger.post("/admin/login/", SIGN_IN),
        lambda: guest.get("/login/"),
    ]


def told_to_come_back(answer: Any) -> None:
    """Check for a problem with a time to retry, and nothing internal."""
    assert "nowhere" not in str(problem(answer, 503, "unavailable"))
    assert answer["Retry-After"] == "5"


@pytest.mark.usefixtures("ada")
def test_every_kind_of_page(
    acme: TenantRef, globex: TenantRef, away: Away, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = pages(acme)
    away()
    for ask in kinds:
        told_to_come_back(ask())
    assert visitor().get("/healthz").status_code == 200
    assert visitor().get("/api/docs/").status_code == 200
    assert "/nowhere" in caplog.text  # the reason, for operators


@pytest.mark.usefixtures("ada")
def test_the_first_request_after_it_is_back(
    acme: TenantRef, globex: TenantRef, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = program(acme)
    away()
    told_to_come_back(client.get(RUNS))
    monkeypatch.undo()
    assert client.get(RUNS).status_code == 200


# --- it goes away in the middle
@contextmanager
def before_runs_are_read(do: Callable[[], object], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have something happen within the view, when the request has found its tenant."""

    def read(*args: Any) -> Any:
        do()
        return executions(*args)

    with patch.context() as patched:
        patched.setattr("executions.api.views.executions.executions", read)
        yield


def test_it_goes_away_within_a_view(
    acme: TenantRef, globex: TenantRef, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = program(acme)
    with before_runs_are_read(away, monkeypatch):
        told_to_come_back(client.get(RUNS))


def test_only_the_connection_is_gone_within_a_view(
    acme: TenantRef, globex: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = program(acme)
    with before_runs_are_read(lambda: hang_up(superuser), monkeypatch):
        assert client.get(RUNS).status_code == 200


@pytest.mark.usefixtures("ada")
def test_it_goes_away_while_somebody_signs_in(
    acme: TenantRef, globex: TenantRef, away: Away
) -> None:
    """The session cannot be kept, which Django tells as the caller's fault."""

    def signed_in(**_: Any) -> None:
        away()

    user_logged_in.connect(signed_in, weak=False)
    try:
        told_to_come_back(answering(visitor()).post("/login/", SIGN_IN))
    finally:
        user_logged_in.disconnect(signed_in)
