"""A worker without Celery, and a neighbour: a run of another tenant that must never notice what a test does."""

import logging
from collections.abc import Iterator

import pytest

from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from foundation.logs import unbind
from tenants.scope import TenantRef
from tests.factories import everything_of, make_boot, make_placed
from tests.integration.executions.worker.lines import Lines


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    """A registered worker whose runtimes are stubs."""
    return make_boot()


@pytest.fixture
def links(boot: WorkerBoot) -> Iterator[LinkRunner]:
    """Its links; what one that did not end has bound to this thread's log lines goes with them."""
    yield LinkRunner(boot)
    unbind()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The log lines of the test."""
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def neighbour(globex: TenantRef, boot: WorkerBoot, links: LinkRunner) -> Iterator[None]:
    """A link of globex is in a step on the same worker during the test; its rows are the same afterwards."""
    links.begin("neighbour", make_placed(globex, boot), "one")
    before = everything_of(globex)
    yield
    assert everything_of(globex) == before
