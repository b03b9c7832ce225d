"""A deployment for a whole module: a worker, two tenants, and a definition of each kind in both."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pytest_django import DjangoDbBlocker

from orchestrator.norp.observed_servers import ServerContext, observed_run_cache
from orchestrator.norp.probes import ProbedDefinition
from orchestrator.norp.suite import Target
from orchestrator.norp.targets import database_target
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef
from tenants.selectors import tenant_by_schema
from tests.acceptance.conftest import WorkerProcess
from tests.conftest import wipe
from tests.customer import Customer
from tests.norp.connection_logs import ConnectionLog, PostgresLog, RequestLog, observed_recorder
from tests.plugin import SERVERS
from tests.provisioners import running_provisioner
from tests.recorder import Recorder
from tests.waiting import wait_for

KINDS = ("cache", "static", "minted", "http")
TYPES = {"cache": "cache", "static": "database", "minted": "database", "http": "http_api"}


@pytest.fixture(scope="module")
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As for every test, but for a whole module, since wiping would take its worker's registration away."""
    with django_db_blocker.unblock():
        yield
        from django.db import connections

        for connection in connections.all(initialized_only=True):
            connection.close()
    wipe()


@pytest.fixture(scope="module")
def worker(database: None) -> Iterator[WorkerProcess]:
    """One that serves the whole module, and a provisioner beside it."""
    worker = WorkerProcess()
    try:
        wait_for(worker.row, "the worker to register", 30)
        with running_provisioner():
            yield worker
    finally:
        worker.stop()


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """An HTTP server that remembers what it was asked."""
    with Recorder().serving() as recorder:
        yield recorder


@pytest.fixture(scope="module")
def tenants(worker: WorkerProcess, customer: Customer, recorder: Recorder) -> list[TenantRef]:
    """Both with all kinds defined, and workers that run them."""
    found = [tenant_by_schema(schema) for schema in ("acme", "globex")]
    for tenant in found:
        put_secret(tenant, "reader", customer.reader.password, actor="tests")
        put_secret(tenant, "admin", customer.admin.password, actor="tests")
        for definition in _definitions(customer, recorder):
            create_definition(tenant, definition, actor="tests")
    return found


@pytest.fixture(scope="module")
def targets(tenants: list[TenantRef], recorder: Recorder) -> dict[str, Target]:
    """One of each kind, of the first tenant, to be compared with the second."""
    servers: dict[str, Callable[[], ServerContext]] = {
        "cache": partial(observed_run_cache, SERVERS.cache_url),
        "static": database_target(tenants[0], "static").observe,
        "minted": database_target(tenants[0], "minted").observe,
        "http": partial(observed_recorder, recorder),
    }
    return {
        kind: Target(
            name=kind,
            subject=_subject(tenants[0], kind),
            other=_subject(tenants[1], kind),
            observe=servers[kind],
        )
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def logs(customer: Customer, recorder: Recorder) -> dict[str, ConnectionLog]:
    """The connection logs of the kinds whose server keeps one."""
    log = PostgresLog(customer)
    return {"static": log, "minted": log, "http": RequestLog(recorder)}


def _subject(tenant: TenantRef, kind: str) -> ProbedDefinition:
    return ProbedDefinition(tenant=tenant, definition=kind, type=TYPES[kind])


def _definitions(customer: Customer, recorder: Recorder) -> list[DefinitionInput]:
    place = {"host": customer.host, "port": customer.port, "dbname": customer.dbname}
    configs: dict[str, dict[str, object]] = {
        "cache": {},
        "static": {**place, "user": customer.reader.user},
        "minted": {**place, "user": customer.admin.user, "mint": {"roles": ["reporting"]}},
        "http": {"base_url": recorder.url},
    }
    secrets = {"static": {"password": "reader"}, "minted": {"password": "admin"}}
    return [
        DefinitionInput(
            name=kind,
            type=TYPES[kind],
            config=configs[kind],
            secrets=secrets.get(kind, {}),
            scope="execution",
        )
        for kind in KINDS
    ]
