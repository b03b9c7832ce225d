"""A remote server in memory, and a worker whose nodes open and close what they are granted."""

import pytest

from executions.worker.boot import WorkerBoot
from executions.worker.loops import sweeper
from executions.worker.resources import granting
from isolane.results import Code
from resources.runtimes.stub import StubBackend, fails, succeeds
from tenants.scope import TenantRef
from tests.factories import LEVEL, make_boot
from tests.integration.executions.worker.resources.fake_remote import FakeRemote, define, says


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> FakeRemote:
    found = FakeRemote()
    for module in (granting, sweeper):
        monkeypatch.setattr(module, "issuer_of", lambda _type: found)
    return found


@pytest.fixture
def boot(database: None, acme: TenantRef, globex: TenantRef, remote: FakeRemote) -> WorkerBoot:
    backend = StubBackend(level=LEVEL, script={})
    backend.script = {
        "work": says(backend, ("allocated", 1), ("disposed", 1)),
        "open": says(backend, ("allocated", 1)),
        "use": says(backend, ("reused", 1)),
        "close": says(backend, ("disposed", 1)),
        "break": fails(Code.UNKNOWN_ERROR, "broke"),
        "leak": succeeds({"mine": "issued-password"}),
        "rest": succeeds(None),
        "forge": says(backend, ("disposed", 9)),
    }
    for tenant in (acme, globex):
        define(tenant)
    return make_boot(backend=backend)
