"""Steps of one run that try to reach another run or the platform: on real workers, with two tenants.

They run at both levels, but for those that wait for the next run in the same runner, which `process` does not have. The
secrets of their resources are inside at both; what is brokered is searched for in `tests/integration/resources/gate/`.
More attacks from within a sandbox are in `test_sandboxes.py` and in `tests/integration/resources/runtimes/process/`.
"""

import base64
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
import redis
from django.conf import settings
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from executions.blueprints.errors import InvalidBlueprint
from executions.models import Execution, StepLog
from executions.states import TERMINAL_EXECUTION
from resources.models import ResourceDefinition
from resources.runtimes.base import Availability
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from tenants.scope import TenantRef, tenant_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import ended, reload, start_run
from tests.customer import Customer
from tests.plugin import SERVERS
from tests.recorder import Recorder
from tests.waiting import wait_for
from trials.storm.definitions import TOKEN, define

Server = psycopg.Connection[tuple[object, ...]]
ALL = {
    "shop": {"type": "database", "definition": "shop"},
    "own": {"type": "database", "definition": "own"},
    "scratch": {"type": "cache", "definition": "scratch"},
    "web": {"type": "http_api", "definition": "web"},
}
SCRATCH = {"scratch": ALL["scratch"]}
BROKERED = {"scratch": {"type": "cache", "definition": "brokered"}}


@pytest.fixture(autouse=True)
def _defined(
    acme: TenantRef,
    globex: TenantRef,
    customer: Customer,
    recorder: Recorder,
    run_cache: "redis.Redis",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Give the workers nodes that attack, and both tenants the same definitions under the same names."""
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.attack_nodes")
    for tenant in (acme, globex):
        define(tenant, customer, recorder, credentials="inside")


@pytest.fixture
def levels(process_level: Availability) -> list[str]:
    """The levels of this machine; the tests of `process` itself say if it is not available."""
    return ["shared", "process"] if process_level.ok else ["shared"]


def attack(node: str, **parameters: Any) -> dict[str, Any]:
    return {"uses": f"attack.{node}", "with": parameters}


def output(tenant: TenantRef, run: Execution, state: str = "succeeded") -> Any:
    found = ended(tenant, run)
    assert (found.state, found.message) == (state, "")
    with tenant_scope(tenant):
        return run.steps.get(path="s1").output


# --- the memory of another run
def test_what_a_run_has_kept_is_of_no_use_to_the_next_one(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    keep = attack("keep", resources=list(ALL))
    pid = output(acme, start_run(acme, keep, resources=ALL))
    tried = output(acme, start_run(acme, attack("use_kept")))
    assert tried.pop("pid") == pid  # the very process in which it was kept
    assert {name: what.partition(":")[0] for name, what in tried.items()} == {
        "own": "OperationalError",
        "shop": "OperationalError",
        "scratch": "RuntimeError",
        "web": "RuntimeError",
        "context": "RuntimeError",
        "declared": "StepError",
        "login": "OperationalError",
        "user": "AuthenticationError",
    }
    assert "closed" in tried["shop"]
    # Another tenant never gets that process.
    assert output(globex, start_run(globex, keep, resources=ALL)) != pid


def test_no_secret_of_a_run_is_in_the_memory_of_the_next_one(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, customer: Customer
) -> None:
    start_worker()
    begin = attack("open", resources=list(ALL))
    fail = {**attack("break_with", resources=list(ALL)), "on_failure": "continue"}
    opened = output(acme, start_run(acme, begin, fail, resources=ALL))
    given = [customer.reader.password[::-1], TOKEN[::-1], *opened["made"]]
    # Secrets that stay in the worker were never in the runner.
    never = [customer.admin.password, settings.SECRET_KEY, SERVERS.secrets.encryption_key]
    never += [str(urlsplit(url).password) for url in (SERVERS.cache_url, settings.REDIS_URL)]
    never += [
        str(conninfo_to_dict(url)["password"]) for url in (SERVERS.login_url, SERVERS.owner_url)
    ]
    needles = given + [secret[::-1] for secret in never]
    found = output(acme, start_run(acme, attack("search", backwards=needles)))
    assert found["pid"] == opened["pid"]
    assert found["objects"] == [[]] * len(needles)
    assert found["memory"][len(given) :] == [0] * len(never)


def test_no_secret_of_a_run_is_in_a_file_the_environment_or_the_arguments(
    acme: TenantRef,
    globex: TenantRef,
    start_worker: StartWorker,
    levels: list[str],
) -> None:
    start_worker()
    homes = set()
    search = attack("search_places", resources=list(ALL))
    for tenant, level in product((acme, globex), levels):
        run = start_run(tenant, search, resources=ALL, isolation=level)
        found = output(tenant, run)
        assert found["found"] == []
        assert found["searched_for"] == len(ALL)
        assert {"/proc/self/environ", "/proc/self/cmdline"} <= set(found["looked_at"])
        assert reload(tenant, run).isolation == level
        if level == "shared":
            homes.add(found["home"])
    assert len(homes) == 2
    # The runtimes of shared still live, and their folders hold no file of the customer or of the platform.
    for home in homes:
        assert [path for path in Path(home).rglob("*") if path.is_file()] == []


# --- the cache of another run
def test_a_run_reaches_no_key_of_another_one_and_nothing_of_the_server(
    acme: TenantRef,
    globex: TenantRef,
    start_worker: StartWorker,
    run_cache: "redis.Redis",
    levels: list[str],
) -> None:
    start_worker()
    for tenant in (acme, globex):
        create_definition(tenant, DefinitionInput(name="brokered", type="cache"), actor="tests")
    for level, declared in (("shared", SCRATCH), ("process", SCRATCH), ("process", BROKERED)):
        if level not in levels:
            continue
        fields: dict[str, Any] = {"resources": declared, "isolation": level}
        guarded = start_run(acme, attack("guard_key"), **fields)
        prefix = f"exec:{guarded.pk}:1:{declared['scratch']['definition']}:"
        wait_for(lambda key=f"{prefix}k": run_cache.exists(key), "the other run's key")  # type: ignore[misc]  # a bound loop variable
        for tenant in (acme, globex):
            answers = output(tenant, start_run(tenant, attack("cache", prefix=prefix), **fields))
            assert answers, "nothing was asked"
            for command, answer in answers.items():
                refusals = {"NoPermissionError", "AuthenticationError"}
                assert answer in refusals, f"{level}, {command}: {answer}"
        run_cache.set(f"{prefix}tried", 1)
        assert output(acme, guarded) == "mine"


# --- resources that were not declared, or belong to others; at both levels
@pytest.mark.usefixtures("both_levels")
def test_an_undeclared_resource_is_refused_though_the_tenant_has_it(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    for tenant in (acme, globex):
        for name in ("shop", "own", "../shop", "shop' OR '1'='1"):
            run = ended(tenant, start_run(tenant, attack("resource", name=name), resources=SCRATCH))
            assert (run.state, run.code) == ("failed", "POLICY_VIOLATION"), name
        declared = start_run(tenant, attack("resource", name="scratch"), resources=SCRATCH)
        assert output(tenant, declared) is None


@pytest.mark.usefixtures("main_level")
def test_a_definition_of_another_tenant_is_not_there(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker
) -> None:
    start_worker()
    create_definition(acme, DefinitionInput(name="only-acmes", type="cache"), actor="tests")
    declared = {"theirs": {"type": "cache", "definition": "only-acmes"}}
    steal = attack("resource", name="theirs")
    with pytest.raises(InvalidBlueprint, match="only-acmes"):
        start_run(globex, steal, resources=declared)
    assert output(acme, start_run(acme, steal, resources=declared)) is None


# --- the platform's own servers, by host names; at both levels
@pytest.mark.usefixtures("both_levels")
def test_a_host_name_that_stands_for_the_platform_is_refused_when_a_run_opens_it(
    acme: TenantRef, globex: TenantRef, start_worker: StartWorker, run_cache: "redis.Redis"
) -> None:
    start_worker()
    place = {"base_url": f"http://localhost:{urlsplit(settings.CACHE_URL).port}"}
    for tenant in (acme, globex):
        with tenant_scope(tenant):  # as if the name had been changed to this address since
            ResourceDefinition.objects.create(name="inside", type="http_api", config=place)
        declared = {"web": {"type": "http_api", "definition": "inside"}}
        run = ended(tenant, start_run(tenant, attack("resource", name="web"), resources=declared))
        assert (run.state, run.code) == ("failed", "POLICY_VIOLATION")
        assert "is not allowed for a resource" in run.message


# --- secrets in all outputs of a step; at both levels
WAYS = {
    "silence": ("succeeded", ""),
    "step error": ("failed", "UNKNOWN_ERROR"),
    "error": ("failed", "UNKNOWN_ERROR"),
    "cost": ("failed", "UNKNOWN_ERROR"),
    "output": ("failed", "POLICY_VIOLATION"),
    "base64": ("failed", "POLICY_VIOLATION"),
    "variable": ("failed", "POLICY_VIOLATION"),
    "question": ("suspended", ""),  # asked without the secret
}


@pytest.mark.timeout(240)
def test_a_secret_that_a_step_tells_is_written_nowhere(
    acme: TenantRef,
    globex: TenantRef,
    start_worker: StartWorker,
    customer: Customer,
    superuser: Server,
    levels: list[str],
) -> None:
    worker = start_worker()
    runs = []
    for way, tenant, level in product(WAYS, (acme, globex), levels):
        tell = attack("tell", resources=list(ALL), how=way)
        run = start_run(tenant, tell, resources=ALL, isolation=level)
        runs.append((way, tenant, level, run))
    for way, tenant, level, run in runs:
        found = wait_for(lambda t=tenant, r=run: _rests(t, r), f"a run with the output {way}")  # type: ignore[misc]  # bound loop variables
        assert (found.state, found.code, found.isolation) == (*WAYS[way], level), way
        with tenant_scope(tenant):
            assert run.steps.get(path="s1").output is None
            lines = set(StepLog.objects.filter(execution=run).values_list("message", flat=True))
        assert {f"{by} ***" for by in ("print", "log", "line", "descriptor")} <= lines, way
    worker.stop()
    written = [*_rows(superuser), *worker.log.read_text().splitlines()]
    assert any("is it ***?" in line for line in written)
    for form in _forms(customer.reader.password, customer.admin.password, TOKEN):
        assert [line for line in written if form in line] == []


def _rests(tenant: TenantRef, run: Execution) -> Execution | None:
    found = reload(tenant, run)
    return found if found.state in TERMINAL_EXECUTION | {"suspended"} else None


def _forms(*secrets: str) -> Iterator[str]:
    for secret in secrets:
        yield secret
        yield base64.b64encode(secret.encode()).decode().rstrip("=")
        yield base64.b64encode(f"user:{secret}".encode()).decode()[8:-4]
        yield base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
        yield quote(secret, safe="")
        yield secret.encode().hex()  # as PostgreSQL shows bytes


def _rows(superuser: Server) -> Iterator[str]:
    """Yield all rows of the platform as text."""
    tables = superuser.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'acme', 'globex')"
    ).fetchall()
    for schema, table in tables:
        whole = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(str(schema), str(table)))
        yield from (str(row[0]) for row in superuser.execute(whole).fetchall())
