"""PostgreSQL and Redis go away while runs of two tenants are under way: nothing is lost, and nothing runs twice."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.own_stack import RUNS, TENANTS, OwnStack, own_stack
from tests.waiting import wait_for

BLUEPRINT = """
name: noted
inputs: {type: object, required: [notes, until], properties: {notes: {type: string}, until: {type: string}}}
steps:
  - {key: first, uses: trial.note_and_wait, with: {notes: "${inputs.notes}", until: "${inputs.until}"}}
  - {key: second, uses: trial.note_and_wait, with: {notes: "${inputs.notes}", until: "${inputs.until}"}}
"""
QUICK_SECONDS = (
    3.0  # that an answer may take while a server is away; the machine of the tests may be busy
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnStack]:
    """For all tests here; each leaves it as it was."""
    with own_stack(tmp_path_factory.mktemp("away") / "home") as running:
        for tenant in TENANTS:
            sent = running.call(tenant, "POST", "/api/v1/blueprints", json={"source": BLUEPRINT})
            assert sent.status_code == 201, sent.text
        yield running


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The runs of a test; they stay in their first step until they are let go."""

    stack: OwnStack
    notes: Path
    until: Path
    submitted: list[tuple[str, str]]

    def submit(self, tenant: str, **headers: str) -> str:
        """Submit one more, which must be taken quickly."""
        began = time.monotonic()
        answer = self.post(tenant, **headers)
        assert answer.status_code == 202, answer.text
        assert time.monotonic() - began < QUICK_SECONDS
        self.submitted.append((tenant, answer.json()["id"]))
        return self.submitted[-1][1]

    def post(self, tenant: str, **headers: str) -> httpx.Response:
        """Try to submit one."""
        inputs = {"notes": str(self.notes), "until": str(self.until)}
        body = {"blueprint": "noted", "inputs": inputs}
        return self.stack.call(tenant, "POST", RUNS, json=body, **headers)

    def wait_in(self, step: str) -> None:
        """Wait until each is in this step."""

        def all_are() -> bool:
            return all(f"{_plain(run)} {step}" in self.noted() for _, run in self.submitted)

        wait_for(all_are, f"all runs to be in {step}")

    def noted(self) -> list[str]:
        """Return the steps that have begun, once for each start."""
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def let_go(self) -> None:
        """The steps may end."""
        self.until.touch()

    def all_succeed(self) -> None:
        """Wait for their ends; each step of each has run once."""
        for tenant, run in self.submitted:
            ended = self.stack.ended(tenant, run, 30)
            assert ended["state"] == "succeeded", ended
        once = [
            f"{_plain(run)} {step}" for _, run in self.submitted for step in ("first", "second")
        ]
        assert sorted(self.noted()) == sorted(once)


@pytest.fixture
def runs(stack: OwnStack, tmp_path: Path) -> Runs:
    """None yet."""
    return Runs(stack=stack, notes=tmp_path / "notes", until=tmp_path / "until", submitted=[])


def _plain(run: str) -> str:
    return run.removeprefix("exec_")


def _first_has_ended(stack: OwnStack, tenant: str, run: str) -> bool:
    first: dict[str, Any] = stack.run(tenant, run)["steps"][0]
    return (first["path"], first["state"]) == ("first", "succeeded")


def test_the_broker_is_away(stack: OwnStack, runs: Runs) -> None:
    under_way = [(tenant, runs.submit(tenant)) for tenant in TENANTS]
    runs.wait_in("first")
    with stack.redis.away():
        for tenant in TENANTS:
            runs.submit(tenant)
            key = {"Idempotency-Key": f"key of {tenant}"}
            run = runs.submit(tenant, **key)
            again = runs.post(tenant, **key)
            assert (again.status_code, again.json()["id"]) == (200, run)
        runs.let_go()
        for tenant, run in under_way:  # a checkpoint needs no broker
            wait_for(partial(_first_has_ended, stack, tenant, run), "the first step to end")
    runs.all_succeed()


def test_a_worker_is_stopped_while_the_broker_is_away(stack: OwnStack, runs: Runs) -> None:
    under_way = [(tenant, runs.submit(tenant)) for tenant in TENANTS]
    runs.wait_in("first")
    noticed = stack.worker.log().count("Cannot connect")
    with stack.redis.away():
        wait_for(lambda: stack.worker.log().count("Cannot connect") > noticed, "it to be noticed")
        runs.let_go()
        for tenant, run in under_way:
            wait_for(partial(_first_has_ended, stack, tenant, run), "the first step to end")
        assert stack.worker.stop() == 0
        assert "worker_stopped" in stack.worker.log()  # it has handed over what it held
    stack.worker.start()
    runs.all_succeed()


def test_the_broker_takes_everything_and_answers_nothing(stack: OwnStack, runs: Runs) -> None:
    for tenant in TENANTS:
        runs.submit(tenant)
    runs.wait_in("first")
    with stack.redis.frozen():
        for tenant in TENANTS:
            runs.submit(tenant)
            runs.submit(tenant, **{"Idempotency-Key": f"another key of {tenant}"})
        runs.let_go()
    runs.all_succeed()


def test_the_database_is_away(stack: OwnStack, runs: Runs) -> None:
    for tenant in TENANTS:
        runs.submit(tenant)
    runs.wait_in("first")
    with stack.postgres.away():
        runs.let_go()
        for tenant in TENANTS:
            _refused(partial(stack.call, tenant, "GET", RUNS))
            _refused(partial(stack.call, tenant, "GET", RUNS, Host=f"{tenant}.localhost"))
            _refused(partial(runs.post, tenant))
        _refused(partial(_sign_in, stack))
        _refused(partial(_look_at_admin, stack))
        with stack.browser() as anybody:
            assert anybody.get("/healthz").status_code == 200
    for tenant in TENANTS:
        answer = stack.call(tenant, "GET", RUNS)
        assert answer.status_code == 200, answer.text
        runs.submit(tenant)
    runs.all_succeed()


def _refused(ask: Callable[[], httpx.Response]) -> None:
    began = time.monotonic()
    answer = ask()
    assert time.monotonic() - began < QUICK_SECONDS
    assert answer.status_code == 503, answer.text
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "unavailable"
    assert "isolane_login" not in answer.text


def _sign_in(stack: OwnStack) -> httpx.Response:
    with stack.browser() as browser:
        browser.get("/login/")
        token = browser.cookies["csrftoken"]
        form = {"username": "ada", "password": "a long password", "csrfmiddlewaretoken": token}
        return browser.post("/login/", data=form)


def _look_at_admin(stack: OwnStack) -> httpx.Response:
    with stack.browser() as browser:
        return browser.get("/admin/", headers={"Cookie": f"sessionid={uuid4().hex}"})


def test_every_connection_to_the_database_is_ended(stack: OwnStack, runs: Runs) -> None:
    for tenant in TENANTS:
        runs.submit(tenant)
    runs.wait_in("first")
    with ThreadPoolExecutor(8) as callers:  # so that several connections lie in web's pool
        asked = [callers.submit(stack.call, tenant, "GET", RUNS) for tenant in TENANTS * 8]
    assert {answer.result().status_code for answer in asked} == {200}
    assert stack.hang_up() > len(TENANTS)
    for tenant in TENANTS:
        runs.submit(tenant)
        assert stack.call(tenant, "GET", RUNS).status_code == 200
    stack.hang_up()
    runs.let_go()
    runs.all_succeed()
