"""`isolane norp` and `isolane resources test` against a deployment that runs, and a suite that can fail."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import redis
from click.testing import CliRunner

from executions.models import Blueprint
from orchestrator.cli.commands import norp as command
from orchestrator.cli.main import cli
from orchestrator.norp import watcher
from orchestrator.norp.observed_servers import ObservedServer, ServerContext, ServerSnapshot
from orchestrator.norp.suite import Target
from orchestrator.norp.targets import cache_target
from resources.runtimes.base import Availability
from resources.selectors import all_definitions
from resources.services.secrets import put_secret
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import WorkerProcess
from tests.customer import Customer
from tests.plugin import ROOT, SERVERS
from tests.requirements import give_up
from tests.waiting import wait_for

COMMAND = [sys.executable, "-m", "orchestrator.cli"]
ENVIRONMENT = {**os.environ, "DATABASE_POOL_SIZE": "0"}


def isolane(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call the command as an operator does."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def schemas() -> set[str]:
    with platform_scope():
        return set(Tenant.objects.values_list("schema_name", flat=True))


# --- it passes
def test_it_passes_in_tenants_of_its_own_and_leaves_none(
    worker: WorkerProcess, process_level: Availability
) -> None:
    result = isolane("norp", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    body = json.loads(result.stdout)
    assert body["compliant"]
    levels = ["shared", "process"] if process_level.ok else ["shared"]
    assert [(one["test"], one["resource"], one["level"]) for one in body["tests"]] == [
        (number, "cache", level) for level in levels for number in range(1, 6)
    ]
    demands = [one["demand"] for one in body["tests"][4]["evidence"]]
    assert "No sharing with another tenant (NORP-002)" in demands
    # What cannot be had here is said to be untested, not to have passed.
    untested = {level for level, said in body["levels"].items() if not said["tested"]}
    assert untested == set(Isolation) - set(levels)
    assert body["levels"]["docker"]["reason"].startswith("no worker offers it")
    assert schemas() == {"acme", "globex"}


def test_a_tenants_database_is_tested_at_one_level_and_nothing_secret_is_printed(
    tenants: list[TenantRef], customer: Customer, process_level: Availability
) -> None:
    if not process_level.ok:
        give_up(f"the level process is not available: {process_level.reason}")
    result = isolane("norp", "--tenant", "acme", "--database", "minted", "--level", "process")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (
        "pass Test 2: Intra-Execution Pooling (database minted (minted), process)" in result.stdout
    )
    assert "yes Only 1 connection created (not 3)" in result.stdout
    assert "NORP-006 at process: compliant, 10 of 10 tests pass." in result.stdout
    assert customer.admin.password not in result.stdout + result.stderr
    assert customer.roles("iso_") == []
    assert schemas() == {"acme", "globex"}
    with tenant_scope(tenants[0]):
        made = Blueprint.objects.values_list("name", flat=True)
        assert made
        assert all(name.startswith("norp.") for name in made)
        assert "norp-cache" in {one.name for one in all_definitions()}


def test_an_interrupted_one_leaves_no_tenant(worker: WorkerProcess) -> None:
    process = subprocess.Popen(
        [*COMMAND, "norp"], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE
    )
    with process:
        wait_for(lambda: len(schemas()) == 4, "two temporary tenants")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert schemas() == {"acme", "globex"}


# --- it fails
class Leaking:
    """The run cache, but whenever a connection of a run is seen there, it gets a twin that nobody closes."""

    def __init__(self, server: ObservedServer, twins: ExitStack) -> None:
        self._server = server
        self._twins = twins
        self._tags: set[str] = set()

    def snapshot(self) -> ServerSnapshot:
        new = {one.tag for one in self._server.snapshot().connections} - self._tags
        for tag in new:
            twin = redis.Redis.from_url(
                SERVERS.cache_url, client_name=tag, single_connection_client=True
            )
            self._twins.enter_context(twin).ping()
        self._tags |= new
        return self._server.snapshot()

    def keys_of(self, execution_id: UUID) -> tuple[str, ...]:
        return self._server.keys_of(execution_id)


@contextmanager
def leaking(context: ServerContext) -> Iterator[ObservedServer]:
    with context as server, ExitStack() as twins:
        yield Leaking(server, twins)


def test_it_fails_when_connections_outlive_their_runs(
    tenants: list[TenantRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(*tenants: Any, **options: Any) -> Target:
        target = cache_target(*tenants, **options)
        return replace(target, observe=lambda: leaking(target.observe()))

    monkeypatch.setattr(command, "cache_target", planted)
    monkeypatch.setattr(watcher, "PATIENCE_SECONDS", 0.3)
    result = CliRunner().invoke(
        cli, ["norp", "--tenant", "acme", "--level", "shared", "--json"], catch_exceptions=False
    )
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    assert not body["compliant"]
    broken = {
        (one["test"], demand["demand"])
        for one in body["tests"]
        for demand in one["evidence"]
        if not demand["holds"]
    }
    assert broken == {
        (2, "Only 1 connection created (not 3)"),
        (2, "Connection lifetime = execution lifetime"),
        (3, "R1 destroyed after W1"),
        (4, "Connection closed (node 2 raises)"),
        (4, "No leaked connections (node 2 raises)"),
        (4, "Connection closed (node 2 runs out of time)"),
        (4, "No leaked connections (node 2 runs out of time)"),
    }
    assert schemas() == {"acme", "globex"}


# --- it cannot be run
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--level", "docker"), "no worker offers it"),
        (("--level", "kubernetes"), "No level can be tested"),
        (("--tenant", "nobody"), "There is no tenant 'nobody'"),
        (("--tenant", "acme", "--database", "nothing"), "There is no resource 'nothing'"),
        (("--tenant", "acme", "--database", "http"), "is of type 'http_api', not 'database'"),
        (("--database", "minted"), "name the tenant with --tenant"),
    ],
)
def test_what_cannot_be_run_is_neither_passed_nor_failed(
    tenants: list[TenantRef], arguments: tuple[str, ...], said: str
) -> None:
    result = CliRunner().invoke(cli, ["norp", *arguments], catch_exceptions=False)
    assert result.exit_code == 2
    assert said in result.output
    assert schemas() == {"acme", "globex"}


# --- isolane resources test
def test_a_definition_is_tried_out(tenants: list[TenantRef]) -> None:
    result = CliRunner().invoke(
        cli, ["resources", "test", "minted", "--tenant", "globex"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    run, answer, ledger = result.output.splitlines()
    assert run.startswith("exec_")
    assert answer.startswith('minted answers: {"pid": ')
    assert ledger == "clean: 2 allocated, 2 gone, 0 open"  # a role and a connection


def test_one_that_does_not_work_says_why_without_its_secret(
    tenants: list[TenantRef], customer: Customer
) -> None:
    put_secret(tenants[1], "reader", "wrong-password", actor="tests")
    try:
        result = CliRunner().invoke(
            cli, ["resources", "test", "static", "--tenant", "globex"], catch_exceptions=False
        )
    finally:
        put_secret(tenants[1], "reader", customer.reader.password, actor="tests")
    assert result.exit_code == 1
    assert "static does not work: failed RESOURCE_ERROR" in result.output
    assert "wrong-password" not in result.output
    assert "clean: 0 allocated, 0 gone, 0 open" in result.output
