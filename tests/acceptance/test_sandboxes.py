"""Runs at level `process` on a real worker: each has an environment of its own, and nothing outlives it."""

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connections
from psycopg.conninfo import conninfo_to_dict
from pytest_django import DjangoDbBlocker

from executions.models import Execution, StepLog
from resources.runtimes.base import Availability
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef, tenant_scope
from tenants.selectors import tenant_by_schema
from tests.acceptance.conftest import WorkerProcess
from tests.acceptance.remote_servers import RESOURCES, define
from tests.acceptance.runs import ended, no_slot_is_held, start_run
from tests.acceptance.sandbox_nodes import NAMESPACES
from tests.conftest import wipe
from tests.customer import Customer
from tests.factories import distrust
from tests.plugin import HOME, PATHS, ROOT, SERVERS
from tests.requirements import give_up
from tests.waiting import wait_for
from trials.sandboxes import cgroups, mounts, sandboxed

TOKEN = "a-token-of-the-customer"
WEB = {"web": {"type": "http_api", "definition": "web"}}


@pytest.fixture(scope="module")
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As for every test, but for a whole module, since wiping would take its worker's registration away."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()
    wipe()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that sandboxes show, and whose user may read it."""
    folder = tmp_path_factory.mktemp("shown")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module", autouse=True)
def worker(database: None, process_level: Availability, folder: Path) -> Iterator[WorkerProcess]:
    """One for the whole module, with nodes that report on sandboxes; neither tenant is trusted."""
    if not process_level.ok:
        give_up(f"level process is not available here: {process_level.reason}")
    for schema in ("acme", "globex"):
        distrust(tenant_by_schema(schema))
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("ISOLANE_NODE_PACKAGES", "tests.nodes tests.acceptance.sandbox_nodes")
        paths = os.pathsep.join([os.environ["ISOLANE_NODE_PATHS"], str(folder)])
        changed.setenv("ISOLANE_NODE_PATHS", paths)
        worker = WorkerProcess()
    try:
        wait_for(worker.row, "the worker to register", 30)
        yield worker
    finally:
        worker.stop()


@pytest.fixture(scope="module", autouse=True)
def _resources(database: None, customer: Customer) -> None:
    """Both tenants have the same definitions."""
    for schema in ("acme", "globex"):
        define(tenant_by_schema(schema), customer)


def output(tenant: TenantRef, run: Execution) -> Any:
    found = ended(tenant, run)
    assert (found.state, found.message, found.isolation) == ("succeeded", "", "process")
    with tenant_scope(tenant):
        return run.steps.get(path="s1").output


def test_a_run_shares_nothing_with_other_runs_tenants_or_the_worker(
    acme: TenantRef, globex: TenantRef, worker: WorkerProcess, folder: Path
) -> None:
    """They run at the same time, two of them for the same tenant."""
    mounted = mounts()
    look = {"uses": "sandbox.look", "with": {"folder": str(folder)}}
    runs = [(tenant, start_run(tenant, look)) for tenant in (acme, globex, globex)]
    for tenant, run in runs:
        wait_for(lambda t=tenant, r=run: has_begun(t, r), "all of them to be there")  # type: ignore[misc]  # bound
    inside = sandboxed(worker.process.pid)
    assert len(inside) == 2 * len(runs)  # a guard and a runner each
    (folder / "go").touch()
    seen = [output(tenant, run) for tenant, run in runs]
    pid = worker.process.pid
    theirs = {name: str(Path(f"/proc/{pid}/ns/{name}").readlink()) for name in NAMESPACES}
    for one, other in combinations([*(each["namespaces"] for each in seen), theirs], 2):
        shared = {name for name in NAMESPACES if one[name] == other[name]}
        assert shared == {"cgroup"}  # of which /proc shows nothing but names
    for (_, run), each in zip(runs, seen, strict=True):
        assert len(each["processes"]) == 2
        assert each["files"] == [f"of-this-run-{run.pk}"]
        assert each["interfaces"] == ["lo"]
        assert each["hostname"] == "isolane"
        assert each["written"] == []
    # Its environment is gone before a run has ended.
    assert sandboxed(worker.process.pid) == []
    assert not any(process.is_running() for process in inside)
    assert cgroups([worker.process.pid]) == []
    assert mounts() == mounted
    no_slot_is_held()


def has_begun(tenant: TenantRef, run: Execution) -> bool:
    with tenant_scope(tenant):
        return StepLog.objects.filter(execution=run, message="here").exists()


def test_nothing_of_a_run_is_there_for_the_tenants_next_one(
    acme: TenantRef, globex: TenantRef
) -> None:
    """Neither module state, environment, files, threads and processes, nor a secret that was given to it."""
    for tenant in (acme, globex):
        put_secret(tenant, "token", TOKEN, actor="tests")
        config = {"base_url": "http://127.0.0.1:9", "auth": "bearer", "credentials": "inside"}
        wanted = DefinitionInput(
            name="web", type="http_api", config=config, secrets={"token": "token"}
        )
        create_definition(tenant, wanted, actor="tests")
        search = {"backwards": TOKEN[::-1]}
        for fails in (False, True):
            leave = {"uses": "sandbox.leave", "with": {"fails": fails, **search}}
            left = start_run(tenant, leave, resources=WEB)
            if fails:
                assert ended(tenant, left).state == "failed"
            else:
                assert output(tenant, left)["memory"] > [0]  # or the search would mean nothing
            assert output(tenant, start_run(tenant, {"uses": "sandbox.find", "with": search})) == {
                "module": [],
                "environment": None,
                "file": False,
                "threads": [],
                "processes": 2,
                "memory": [0],
            }
    no_slot_is_held()


def test_a_limit_of_the_gate_is_named_by_the_step_that_met_it(
    acme: TenantRef, globex: TenantRef, customer: Customer
) -> None:
    """Its driver sees a connection that breaks."""
    crowd = {"uses": "sandbox.crowd"}
    limited = start_run(acme, crowd, resources=RESOURCES, limits={"connections": 1})
    free = start_run(globex, crowd, resources=RESOURCES)
    found = ended(acme, limited)
    assert found.state == "failed"
    assert (
        f"At the gate: A connection to {customer.host}:{customer.port} (shop-db)" in found.message
    )
    assert "was refused: the run has as many open as the limit connections " in found.message
    assert output(globex, free) == "answered"


def test_what_a_run_reached_and_was_refused_is_among_its_events(
    acme: TenantRef, globex: TenantRef, customer: Customer
) -> None:
    """From the gate of a real sandbox to the rows of its own tenant."""
    visits = {}
    for tenant in (acme, globex):
        name = f"{tenant.schema}.example.com"
        visits[tenant] = start_run(
            tenant, {"uses": "sandbox.visit", "with": {"name": name}}, resources=RESOURCES
        )
    for tenant, run in visits.items():
        assert output(tenant, run) == [1, "none"]
        with tenant_scope(tenant):
            events = run.events.filter(kind__startswith="connection.").values_list("kind", "data")
            found = {(kind, data["host"]): data for kind, data in events}
        assert set(found) == {
            ("connection.closed", customer.host),
            ("connection.refused", f"{tenant.schema}.example.com"),
        }
        closed = found["connection.closed", customer.host]
        assert (closed["port"], closed["definition"]) == (customer.port, "shop-db")
        assert closed["reason"] == "closed"
        assert min(closed["sent"], closed["received"]) > 0
        refused = found["connection.refused", f"{tenant.schema}.example.com"]
        assert (refused["port"], refused["reason"]) == (0, "not_declared")
    no_slot_is_held()


LIMITS = {"ram_mb": 128, "processes": 32, "disk_mb": 16}
CODES = {"ram": "RAM_EXCEEDED", "processes": "PROCESS_LIMIT", "disk": "DISK_FULL"}


def test_a_run_that_takes_too_much_fails_with_the_code_of_its_limit_and_disturbs_no_other(
    acme: TenantRef, globex: TenantRef, worker: WorkerProcess
) -> None:
    for what, code in CODES.items():
        nap = {"uses": "test.sleep", "with": {"seconds": 0.5}}
        neighbour = start_run(globex, nap, {"uses": "test.identity"})
        greedy = start_run(acme, {"uses": "sandbox.take", "with": {"what": what}}, limits=LIMITS)
        found = ended(acme, greedy)
        assert (found.state, found.code) == ("failed", code), found.message
        assert 0 < found.peak_ram_mb < LIMITS["ram_mb"] + 64
        assert ended(globex, neighbour).state == "succeeded"
    assert sandboxed(worker.process.pid) == []
    no_slot_is_held()


def test_no_secret_file_or_folder_of_the_platform_is_in_a_sandbox(
    acme: TenantRef, globex: TenantRef
) -> None:
    secrets = [settings.SECRET_KEY, SERVERS.secrets.encryption_key]
    secrets += [str(urlsplit(url).password) for url in (SERVERS.cache_url, settings.REDIS_URL)]
    urls = (SERVERS.login_url, SERVERS.owner_url, SERVERS.worker_url)
    secrets += [str(conninfo_to_dict(url)["password"]) for url in urls]
    places = (HOME, PATHS.home, PATHS.postgres, PATHS.sockets, ROOT / "tenants", Path("/root"))
    search = {
        "uses": "sandbox.search",
        "with": {
            "backwards": [secret[::-1] for secret in secrets],
            "folders": list(map(str, places)),
        },
    }
    runs = [(tenant, start_run(tenant, search)) for tenant in (acme, globex)]
    for tenant, run in runs:
        found = output(tenant, run)
        assert found == {"memory": [0] * len(secrets), "files": [], "folders": []}
