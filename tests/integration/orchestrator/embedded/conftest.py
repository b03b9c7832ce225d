"""A throwaway home for the real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[EmbeddedPaths]:
    paths = EmbeddedPaths(tmp_path / "home")
    yield paths
    paths.remove()


@pytest.fixture
def servers(paths: EmbeddedPaths) -> EmbeddedServers:
    return EmbeddedServers(paths, durable=False)


@pytest.fixture
def supervisor(paths: EmbeddedPaths) -> Iterator[Supervisor]:
    paths.prepare()
    supervisor = Supervisor(paths.logs)
    yield supervisor
    supervisor.stop_all()
