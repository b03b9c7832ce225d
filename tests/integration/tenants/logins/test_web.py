"""Signing in over HTTP: too many tries have to wait, no one is locked out by others, and failures are recorded."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from foundation.failure_counts import FailureCounts
from tenants.logins import attempts, backend, early, failures
from tenants.logins.hashing import HashingQueue
from tenants.logins.waiting import Waiting
from tenants.models import AuditEntry, User
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope
from tenants.services.api_keys import HINT_LENGTH, create_api_key, revoke_api_key
from tests.front import Front
from tests.integration.tenants.web import member, problem, staff, visitor
from tests.waiting import wait_for

RUNS = "/api/v1/executions"
PAGES = pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
HERE, THERE = "203.0.113.7", "198.51.100.1"
RIGHT = "a long password"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time as the counts of this test, which begin empty, have it."""
    clock = Clock()
    counts = FailureCounts(clock=clock)
    monkeypatch.setattr(attempts, "counts", lambda: counts)
    monkeypatch.setattr(failures, "_ENTRIES", failures.PerMinute(60, clock=clock))
    waiting = Waiting(clock=clock)
    for module in (attempts, early):
        monkeypatch.setattr(module, "WAITING", waiting)
    return clock


@pytest.fixture
def ada(acme: TenantRef, globex: TenantRef, settings: Settings) -> str:
    """Somebody who runs the platform, with a password that is hashed quickly."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with platform_scope():
        User.objects.create_superuser(username="ada", password=RIGHT)
    return "ada"


def sign_in(page: str, account: str, password: str = "wrong", address: str = HERE) -> Any:
    form = {"username": account, "password": password}
    return visitor(REMOTE_ADDR=address).post(page, form)


def trail(action: str = "login.failed") -> list[AuditEntry]:
    with platform_scope():
        return list(AuditEntry.objects.filter(action=action).order_by("id"))


# --- passwords
@PAGES
def test_wrong_passwords_make_the_account_wait_at_their_address_alone(
    ada: str, clock: Clock, page: str
) -> None:
    assert [sign_in(page, ada).status_code for _ in range(6)] == [200] * 6
    refused = sign_in(page, ada, RIGHT)
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert "Too many attempts to sign in; try again in 1 s." in refused.content.decode()
    assert sign_in(page, ada, RIGHT, THERE).status_code == 302  # the account is not locked
    clock.now += 1
    assert sign_in(page, ada).status_code == 200
    assert sign_in(page, ada, RIGHT)["Retry-After"] == "2"
    clock.now += 2
    assert sign_in(page, ada, RIGHT).status_code == 302
    assert [sign_in(page, ada).status_code for _ in range(6)] == [200] * 6  # counted anew


@PAGES
def test_whether_the_account_exists_is_not_told(ada: str, clock: Clock, page: str) -> None:
    found = {}
    for account in (ada, "nobody"):
        for _ in range(6):
            sign_in(page, account)
        refused = sign_in(page, account)
        found[account] = refused.status_code, refused.content, refused["Retry-After"]
    assert found[ada] == found["nobody"]
    assert found[ada][0] == 429


def test_an_address_that_tries_many_accounts_waits(ada: str, clock: Clock) -> None:
    found = [sign_in("/login/", f"user-{number}").status_code for number in range(22)]
    assert found == [200] * 21 + [429]
    assert sign_in("/login/", ada, RIGHT).status_code == 429
    assert sign_in("/login/", ada, RIGHT, THERE).status_code == 302
    clock.now += 1
    assert sign_in("/login/", ada, RIGHT).status_code == 302


def test_who_signs_in_costs_the_address_nothing(ada: str, clock: Clock) -> None:
    assert {sign_in("/login/", ada, RIGHT).status_code for _ in range(23)} == {302}


def test_an_ipv6_network_is_one_address(ada: str, clock: Clock) -> None:
    for number in range(6):
        sign_in("/login/", ada, address=f"2001:db8:1:2::{number}")
    assert sign_in("/login/", ada, RIGHT, "2001:db8:1:2:ffff::1").status_code == 429
    assert sign_in("/login/", ada, RIGHT, "2001:db8:1:3::1").status_code == 302


# --- behind a proxy
def test_callers_behind_a_trusted_proxy_are_told_apart(
    ada: str, clock: Clock, settings: Settings
) -> None:
    settings.TRUSTED_PROXIES = ("10.0.0.0/8",)
    form = {"username": ada, "password": "wrong"}
    proxied = visitor(REMOTE_ADDR="10.0.0.1")
    for number in range(6):  # what the caller itself says is on the left
        proxied.post("/login/", form, headers={"x-forwarded-for": f"1.2.3.{number}, {HERE}"})
    form["password"] = RIGHT
    refused = proxied.post("/login/", form, headers={"x-forwarded-for": HERE})
    other = proxied.post("/login/", form, headers={"x-forwarded-for": THERE})
    assert (refused.status_code, other.status_code) == (429, 302)


def test_where_all_have_the_proxys_address_it_stops_nobody(
    ada: str, clock: Clock, settings: Settings
) -> None:
    settings.BEHIND_TLS = True
    for number in range(22):
        sign_in("/login/", f"user-{number}")
        problem(
            visitor(REMOTE_ADDR=HERE, authorization="Bearer isl_x").get(RUNS),
            401,
            "not_authenticated",
        )
    assert sign_in("/login/", ada, RIGHT).status_code == 302


# --- hashing
@PAGES
def test_no_connection_is_held_while_a_password_is_hashed(
    ada: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bool] = []
    encode = MD5PasswordHasher.encode

    def all_are_back() -> bool:
        stats = connection.pool.get_stats()  # type: ignore[attr-defined]  # of tenants.postgresql
        return bool(stats["pool_size"] == stats["pool_available"])

    def hashing(*arguments: Any, **options: Any) -> str:
        # One that was given back is made ready for others first.
        hashed.append(wait_for(all_are_back, "connections to be back", seconds=5))
        return encode(*arguments, **options)

    monkeypatch.setattr(MD5PasswordHasher, "encode", hashing)
    for account in (ada, "nobody"):
        client = visitor()
        client.get(page)  # a connection has been used before
        assert client.post(page, {"username": account, "password": "wrong"}).status_code == 200
    assert hashed == [True, True]


def test_who_finds_the_queue_full_is_refused_at_once_and_not_counted(
    ada: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = HashingQueue(at_once=1, waiting=0)
    monkeypatch.setattr(backend, "QUEUE", queue)
    with queue.place():
        for _ in range(10):
            refused = sign_in("/login/", ada, RIGHT)
            assert (refused.status_code, refused["Retry-After"]) == (429, "2")
    assert sign_in("/login/", ada, RIGHT).status_code == 302
    assert trail() == []


def test_a_password_that_was_hashed_otherwise_is_hashed_anew(
    ada: str, clock: Clock, settings: Settings
) -> None:
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    assert sign_in("/login/", ada).status_code == 200
    assert password_of(ada).startswith("md5$")
    for _ in range(2):
        assert sign_in("/login/", ada, RIGHT).status_code == 302
        assert password_of(ada).startswith("scrypt$")


def password_of(account: str) -> str:
    with platform_scope():
        return User.objects.get(username=account).password


# --- API keys
def ask(key: str, address: str = HERE) -> Any:
    return visitor(authorization=f"Bearer {key}", REMOTE_ADDR=address).get(RUNS)


@contextmanager
def no_queries() -> Iterator[None]:
    with CaptureQueriesContext(connection) as queries:
        yield
    assert queries.captured_queries == []


def test_wrong_keys_make_their_address_wait_before_the_database_is_asked(
    ada: str, acme: TenantRef, clock: Clock
) -> None:
    known, fresh = (create_api_key(tenant=acme, name="k", actor="tests") for _ in range(2))
    assert ask(known).status_code == 200
    for number in range(21):
        problem(ask(f"isl_{number}"), 401, "not_authenticated")
    with no_queries():
        refused = ask("isl_wrong")
    problem(refused, 429, "too_many_attempts")
    assert refused["Retry-After"] == "1"
    assert ask(known).status_code == 200  # whatever others at its address do
    assert ask(fresh).status_code == 429
    assert ask(fresh, THERE).status_code == 200
    assert sign_in("/login/", ada, RIGHT).status_code == 302  # people are counted apart
    clock.now += 1
    assert ask(fresh).status_code == 200


def test_a_valid_key_asks_nobody_but_the_database(
    acme: TenantRef, globex: TenantRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create_api_key(tenant=acme, name="k", actor="tests")
    assert ask(key).status_code == 200
    monkeypatch.delattr(attempts, "counts")
    assert ask(key).status_code == 200


def test_a_key_that_was_valid_is_refused_once_it_is_revoked(acme: TenantRef, clock: Clock) -> None:
    key = create_api_key(tenant=acme, name="k", actor="tests")
    assert ask(key).status_code == 200
    revoke_api_key(tenant=acme, hint=key[:HINT_LENGTH], actor="tests")
    for _ in range(21):
        problem(ask(key), 401, "not_authenticated")
    with no_queries():
        problem(ask(key), 429, "too_many_attempts")


# --- in front of Django
def test_an_address_that_waits_is_known_in_front_of_django(
    ada: str, acme: TenantRef, clock: Clock
) -> None:
    """The answers are those of Django, without any work."""
    front = Front(clock=clock)
    known = create_api_key(tenant=acme, name="k", actor="tests")
    assert ask(known).status_code == 200
    assert front.now("POST", "/login/") is None
    for number in range(22):
        page, data = sign_in("/login/", f"user-{number}"), ask("isl_x")
    for path, slow, key in (("/login/", page, ""), (RUNS, data, "isl_x")):
        with no_queries():
            quick = front.now("POST", path, key=key)
        assert quick is not None
        status, headers, body = quick
        assert (status, body) == (slow.status_code, slow.content)
        for name in ("retry-after", "content-type", "content-security-policy", "cache-control"):
            assert headers[name] == slow[name], name
        assert headers["x-request-id"] == "mine"
    assert front.now("GET", "/login/") is None
    assert front.now("GET", RUNS, key=known) is None
    assert front.now("GET", "/admin/", key="isl_x") is None  # keys are not looked at there
    assert front.now("GET", RUNS, key="isl_x", address=THERE) is None
    clock.now += 1
    assert front.now("POST", "/login/") is None


def test_an_account_that_waits_does_not_stop_others_at_its_address(ada: str, clock: Clock) -> None:
    for _ in range(7):
        refused = sign_in("/login/", "bob")
    assert refused.status_code == 429
    assert sign_in("/login/", ada, RIGHT).status_code == 302


# --- what is written down
def test_failures_are_logged_and_few_are_audited(
    ada: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            sign_in("/login/", "ada\r\n{}", "hunter2")
    assert len(caplog.records) == 5
    line = vars(caplog.records[-1])
    assert (line["event"], line["account"], line["address"]) == ("LOGIN_FAILED", "ada��{}", HERE)
    assert "hunter2" not in caplog.text
    entries = [(entry.actor, entry.subject, entry.details["failures"]) for entry in trail()]
    assert entries == [(f"address:{HERE}", "ada��{}", number) for number in (1, 2, 4)]


def test_wrong_keys_are_audited_without_the_key(acme: TenantRef, clock: Clock) -> None:
    for number in range(4):
        ask(f"isl_secret{number}")
    assert [entry.details["failures"] for entry in trail()] == [1, 2, 4]
    assert "secret" not in str([vars(entry) for entry in trail()])


def test_nobody_fills_the_audit_trail(
    acme: TenantRef, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_ENTRIES", failures.PerMinute(3, clock=clock))
    for number in range(10):
        ask("isl_x", f"203.0.113.{number}")
    assert len(trail()) == 3
    clock.now += 60
    ask("isl_x", THERE)
    assert trail()[-1].details["unrecorded"] == 7


# --- sessions
def ends_in(client: Client) -> timedelta:
    return client.session.get_expiry_date() - timezone.now()


def test_staff_sessions_are_short_and_their_logins_audited(ada: str, acme: TenantRef) -> None:
    client = visitor(REMOTE_ADDR=HERE)
    client.post("/admin/login/", {"username": ada, "password": RIGHT})
    assert timedelta(hours=7.9) < ends_in(client) <= timedelta(hours=8)
    session = client.session
    session["something"] = "changed"
    session.save()
    assert ends_in(client) <= timedelta(hours=8)
    (entry,) = trail("login.staff")
    assert (entry.actor, entry.subject) == ("user:ada", f"address:{HERE}")

    assert timedelta(days=6.9) < ends_in(member(acme, Role.VIEWER)) <= timedelta(days=7)
    assert len(trail("login.staff")) == 1


# --- what browsers and caches may do
def test_every_answer_has_a_policy_and_is_not_stored(acme: TenantRef) -> None:
    data = (RUNS, "/healthz", "/no/such/page", "/api/schema/", "/api/docs/?script=")
    pages = ("/api/docs/", "/login/", "/admin/login/")
    for path in (*data, *pages):
        answer = visitor().get(path)
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert ("script-src 'self'" in policy) == (path in pages), path
        assert "no-store" in answer["Cache-Control"], path
        assert re.findall("<style|<script>", answer.content.decode()) == [], path


def test_the_admin_has_no_inline_scripts_or_styles(acme: TenantRef) -> None:
    client = staff()
    for path in ("/admin/", "/admin/tenants/tenant/", f"/admin/tenants/tenant/{acme.id}/change/"):
        shown = client.get(path).content.decode()
        assert re.findall(r"<style|<script>|\sstyle=|\son\w+=", shown) == [], path


def test_static_files_stay_cacheable(acme: TenantRef) -> None:
    answer = visitor().get("/static/admin/css/base.css")
    assert "max-age" in answer["Cache-Control"]
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    answer.close()
