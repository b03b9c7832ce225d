"""A worker whose nodes do what a test tells them, and backoffs of milliseconds."""

import pytest

from executions.worker.boot import WorkerBoot
from isolane.protocol import NodeDescription
from isolane.results import RETRY_BASE_MS
from resources.runtimes.stub import succeeds
from tests.factories import make_boot

NODES = ("work", "flaky", "rescue", "pure")


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    """All of its nodes succeed until a test says otherwise."""
    pure = NodeDescription(name="pure", parameters={}, idempotent=True, deterministic=True)
    return make_boot(
        script={name: succeeds({"n": 1}) for name in NODES}, descriptions={"pure": pure}
    )


@pytest.fixture(autouse=True)
def _short_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", dict.fromkeys(RETRY_BASE_MS, 1))
