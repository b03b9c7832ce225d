"""The caller of a request: by host name, by API key, by session; and never another tenant's."""

import re
import uuid
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from foundation.known_caller import STATE
from tenants.caller import Caller
from tenants.middleware import ScopeMiddleware
from tenants.models import Membership, User
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope
from tenants.services.api_keys import HINT_LENGTH, create_api_key, revoke_api_key
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.integration.tenants.web import host_of, member, problem, program, staff, visitor

RUNS = "/api/v1/executions"


# --- programs
def test_a_key_on_the_base_host_and_on_its_own(acme: TenantRef, globex: TenantRef) -> None:
    for tenant in (acme, globex):
        for host in ("isolane.test", "ISOLANE.test:8000", "127.0.0.1", "[::1]", host_of(tenant)):
            assert program(tenant, host=host).get(RUNS).status_code == 200, host


def test_a_key_at_another_tenants_host_looks_like_one_that_nobody_has(
    acme: TenantRef, globex: TenantRef
) -> None:
    headers = {"x-request-id": "same"}
    unknown = visitor(host_of(globex), "Bearer isl_nobody").get(RUNS, headers=headers)
    strayed = program(acme, host=host_of(globex)).get(RUNS, headers=headers)
    problem(unknown, 401, "not_authenticated")
    assert (strayed.status_code, strayed.content) == (401, unknown.content)
    assert strayed.headers == unknown.headers


def test_a_revoked_key_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    key = create_api_key(tenant=acme, name="ci", actor="tests")
    client = visitor(authorization=f"bearer {key}")
    assert client.get(RUNS).status_code == 200
    revoke_api_key(tenant=acme, hint=key[:HINT_LENGTH], actor="tests")
    refused = client.get(RUNS)
    problem(refused, 401, "not_authenticated")
    assert refused["WWW-Authenticate"] == 'Bearer realm="isolane"'


@pytest.mark.parametrize("header", ["Basic dXNlcjpwdw==", "isl_key", "Bearer", "Bearer x y"])
def test_another_authorization_is_refused(acme: TenantRef, globex: TenantRef, header: str) -> None:
    for host in ("isolane.test", host_of(acme)):
        problem(visitor(host, header).get(RUNS), 401, "not_authenticated")


def test_nobody_is_told_to_say_who_he_is(acme: TenantRef, globex: TenantRef) -> None:
    for host in ("isolane.test", host_of(acme)):
        problem(visitor(host).get(RUNS), 401, "not_authenticated")


# --- people
def test_a_member_sees_the_tenant_of_the_host(acme: TenantRef, globex: TenantRef) -> None:
    assert member(acme, Role.VIEWER).get(RUNS).status_code == 200


def test_who_is_no_member_is_nobody(acme: TenantRef, globex: TenantRef) -> None:
    problem(member(acme, None).get(RUNS), 401, "not_authenticated")


def test_a_member_is_nobody_at_another_tenants_host(acme: TenantRef, globex: TenantRef) -> None:
    client = member(acme, Role.ADMIN)
    problem(client.get(RUNS, headers={"host": host_of(globex)}), 401, "not_authenticated")


def test_a_member_has_no_tenant_on_the_base_host(acme: TenantRef, globex: TenantRef) -> None:
    client = member(acme, Role.ADMIN)
    problem(client.get(RUNS, headers={"host": "isolane.test"}), 401, "not_authenticated")


def test_a_key_counts_more_than_a_session(acme: TenantRef, globex: TenantRef) -> None:
    client = member(acme, Role.VIEWER, enforce_csrf_checks=True)
    key = create_api_key(tenant=acme, name="ci", role=Role.OPERATOR, actor="tests")
    run = f"{RUNS}/exec_{uuid.uuid4()}/cancel"
    headers = {"authorization": f"Bearer {key}"}
    problem(client.post(run, headers=headers), 404, "not_found")  # neither forbidden nor CSRF


def test_a_member_signs_in_again_and_out_at_the_tenants_host(
    acme: TenantRef, globex: TenantRef
) -> None:
    client = member(acme, Role.OPERATOR)
    with platform_scope():
        user = User.objects.get()
        user.set_password("a long password")
        user.save()
    form = {"username": user.username, "password": "a long password"}
    client.cookies.clear()
    for _ in range(2):
        assert client.get("/login/").status_code == 200
        assert client.post("/login/", form).status_code == 302
        assert client.get(RUNS).status_code == 200
    assert client.post("/logout/").status_code == 302
    problem(client.get(RUNS), 401, "not_authenticated")


# --- callers who are limited to some blueprints
def caller_of(tenant: TenantRef, user: User | AnonymousUser, **headers: str) -> tuple[Caller, int]:
    """Return the middleware's caller, and the number of statements it took."""
    found: list[Caller] = []

    def view(request: HttpRequest) -> HttpResponse:
        found.append(request.caller)  # type: ignore[attr-defined]
        return HttpResponse()

    request = RequestFactory().get(RUNS, headers={"host": host_of(tenant), **headers})
    request.user = user
    with CaptureQueriesContext(connection) as queries:
        ScopeMiddleware(view)(request)
    return found[0], len(queries)


@pytest.mark.parametrize("limit", [None, ["billing", "hiring"]])
def test_a_keys_blueprints_come_with_it(
    acme: TenantRef, globex: TenantRef, limit: list[str] | None
) -> None:
    key = create_api_key(tenant=acme, name="ci", blueprints=limit, actor="tests")
    create_api_key(tenant=globex, name="ci", blueprints=["other"], actor="tests")
    caller, queries = caller_of(acme, AnonymousUser(), authorization=f"Bearer {key}")
    assert caller.blueprints == (frozenset(limit) if limit else None)
    assert queries == 2  # the key, the host


@pytest.mark.parametrize("limit", [None, ["billing"]])
def test_a_members_blueprints_are_those_of_this_tenant(
    acme: TenantRef, globex: TenantRef, limit: list[str] | None
) -> None:
    with platform_scope():
        user = User.objects.create(username="alice")
        for tenant, blueprints in ((acme, limit), (globex, ["other"])):
            Membership.objects.create(user=user, tenant_id=tenant.id, blueprints=blueprints)
    caller, queries = caller_of(acme, user)
    assert caller.blueprints == (frozenset(limit) if limit else None)
    assert queries == 2  # the host, the membership
    assert caller_of(globex, user)[0].blueprints == frozenset({"other"})


# --- tenants that take no work
@pytest.mark.parametrize("status", [TenantStatus.SUSPENDED, TenantStatus.DELETING])
def test_a_tenant_that_is_not_active(
    acme: TenantRef, globex: TenantRef, status: TenantStatus
) -> None:
    clients = [program(acme), program(acme, host=host_of(acme)), member(acme, Role.ADMIN)]
    set_status(schema="acme", status=status, actor="tests")
    for client in clients:
        body = problem(client.get(RUNS), 409, "tenant_not_active")
        assert f"'acme' is {status.label}" in body["detail"]
    assert program(globex).get(RUNS).status_code == 200


# --- addresses
@pytest.mark.parametrize("who", ["nobody", "a wrong key", "a key", "a member"])
def test_an_unknown_host_looks_like_another_tenants(
    acme: TenantRef, globex: TenantRef, who: str
) -> None:
    """No caller can tell tenants' names from others, by the answer or by the statements that it takes."""
    keys = {"a wrong key": "isl_nobody", "a key": create_api_key(tenant=acme, name="k", actor="me")}
    client = member(acme, Role.ADMIN) if who == "a member" else visitor()
    addresses = (f"203.0.113.{number}" for number in range(1, 255))

    def ask(host: str, path: str) -> tuple[Any, ...]:
        sent = {"host": host, "x-request-id": "same"}
        if who in keys:
            sent["authorization"] = f"Bearer {keys[who]}"
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(path, headers=sent, REMOTE_ADDR=next(addresses))
        body = re.sub(rb'name="csrfmiddlewaretoken" value="\w+"', b"", answer.content)
        headers = {name: value for name, value in answer.headers.items() if name != "Expires"}
        return answer.status_code, body, headers, len(queries)

    for path in (RUNS, "/", "/admin/", "/api/docs/", "/login/", "/no/such/page"):
        ask(host_of(globex), path)  # what is looked up once in a process
        assert ask("nobody.isolane.test", path) == ask(host_of(globex), path), path


def test_a_tenants_name_is_no_secret_to_its_members(acme: TenantRef, globex: TenantRef) -> None:
    client = member(acme, Role.ADMIN)
    assert client.get(RUNS).status_code == 200
    problem(client.get(RUNS, headers={"host": "nobody.isolane.test"}), 401, "not_authenticated")


def test_a_host_that_is_not_ours(acme: TenantRef) -> None:
    problem(visitor("evil.example.com").get(RUNS), 400, "invalid_input")


def test_an_unknown_path(acme: TenantRef, globex: TenantRef) -> None:
    for client in (visitor(), visitor(host_of(acme)), program(acme)):
        problem(client.get("/no/such/page"), 404, "not_found")


def test_the_process_says_that_it_answers(acme: TenantRef) -> None:
    for host in ("isolane.test", host_of(acme), "10.0.0.7"):  # a probe knows an address only
        assert visitor(host).get("/healthz").content == b"ok\n"


# --- the platform's admin
def test_there_is_no_admin_on_a_tenants_host(acme: TenantRef, globex: TenantRef) -> None:
    for client in (visitor(host_of(acme)), staff(host=host_of(acme)), member(acme, Role.ADMIN)):
        for path in ("/admin/", "/admin/login/", "/admin/tenants/tenant/"):
            problem(client.get(path), 404, "not_found")


def test_the_admin_is_for_staff_only(acme: TenantRef, globex: TenantRef) -> None:
    page = "/admin/tenants/tenant/"
    for client in (visitor(), staff(is_staff=False)):
        answer = client.get(page)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/")
    with platform_scope():
        User.objects.update(is_staff=True, is_superuser=True)
    assert client.get(page).status_code == 200
    with platform_scope():
        User.objects.update(is_active=False)
    assert client.get(page).status_code == 302


def test_staff_can_sign_in_and_out(acme: TenantRef) -> None:
    with platform_scope():
        User.objects.create_superuser(username="admin", password="a long password")
    client = visitor()
    wrong = client.post("/admin/login/", {"username": "admin", "password": "wrong"})
    assert b"Please enter the correct" in wrong.content
    right = {"username": "admin", "password": "a long password"}
    assert client.post("/admin/login/?next=/admin/", right)["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200
    client.post("/admin/logout/")
    assert client.get("/admin/").status_code == 302


def test_a_form_without_the_csrf_token_is_refused_with_a_problem(acme: TenantRef) -> None:
    right = {"username": "admin", "password": "a long password"}
    for path in ("/login/", "/admin/login/"):
        answer = visitor(enforce_csrf_checks=True).post(path, right)
        problem(answer, 403, "csrf_failed")


def test_a_form_that_is_too_large_is_refused_with_a_problem(acme: TenantRef) -> None:
    answer = visitor().post("/login/", "x" * 3_000_000, "application/x-www-form-urlencoded")
    problem(answer, 413, "too_large")


@pytest.mark.parametrize("who", ["staff", "member", "nobody"])
def test_no_mix_of_session_and_key_is_an_error(
    acme: TenantRef, globex: TenantRef, who: str
) -> None:
    clients = {"staff": staff, "member": lambda: member(acme, Role.VIEWER), "nobody": visitor}
    client = clients[who]()
    client.raise_request_exception = False
    keys = [create_api_key(tenant=tenant, name="k", actor="me") for tenant in (acme, globex)]
    found: dict[tuple[str, str, str], int] = {}
    for host in ("isolane.test", host_of(acme), "nobody.isolane.test"):
        for path in ("/admin/", "/admin/login/", "/login/", "/api/docs/", "/", RUNS):
            for key in ("", "isl_nobody", *keys):
                headers = {"host": host} | ({"authorization": f"Bearer {key}"} if key else {})
                found[host, path, key] = client.get(path, headers=headers).status_code
    assert {mix: status for mix, status in found.items() if status >= 500} == {}
    at_admin = {
        status
        for (host, path, _), status in found.items()
        if (host, path) == ("isolane.test", "/admin/")
    }
    assert at_admin == {200 if who == "staff" else 302}  # a key changes nothing there


# --- the log
def test_what_callers_do_wrong_is_not_logged(
    acme: TenantRef, globex: TenantRef, caplog: pytest.LogCaptureFixture
) -> None:
    visitor("evil.example.com").get(RUNS)
    visitor().get("/no/such/page")
    visitor().get(RUNS)
    visitor(enforce_csrf_checks=True).post("/login/", {})
    visitor().post("/login/", "x" * 3_000_000, "application/x-www-form-urlencoded")
    program(acme).post(RUNS, "{", content_type="application/json")
    assert caplog.records == []


# --- the database is away
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_away(
    acme: TenantRef, globex: TenantRef, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = program(acme, host=host_of(acme))

    def fail(_host: str) -> None:
        raise error("password=hunter2")

    monkeypatch.setattr("tenants.middleware.tenant_by_host", fail)
    away = client.get(RUNS)
    assert "hunter2" not in problem(away, 503, "unavailable")["detail"]
    assert away["Retry-After"] == "5"


# --- the caller reported to the server, so that callers take turns
def test_the_server_is_told_of_a_credential_that_is_valid(
    acme: TenantRef, globex: TenantRef
) -> None:
    key = create_api_key(tenant=acme, name="ci", actor="tests")
    assert reported(f"Bearer {key}", "isolane.test") == f"tenant:{acme.id}"
    assert reported(f"Bearer {key}", host_of(globex)) is None
    assert reported("Bearer isl_nobody", "isolane.test") is None
    assert reported("", "isolane.test") is None


def reported(authorization: str, host: str) -> object:
    headers = [(b"host", host.encode()), (b"authorization", authorization.encode())]
    scope = {"type": "http", "method": "GET", "path": RUNS, "headers": headers}
    request = ASGIRequest(scope, BytesIO())
    request.user = AnonymousUser()
    ScopeMiddleware(lambda request: HttpResponse())(request)
    state: Any = request.scope.get("state", {})
    return state.get(STATE)
