"""A worker that was stopped before it was registered."""

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from executions.worker import worker
from executions.worker.boot import WorkerBoot
from resources.runtimes.base import RuntimeBackend


def test_what_was_never_registered_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    backends: Mapping[str, RuntimeBackend] = {
        "shared": SimpleNamespace(stop=lambda: stopped.append("shared"))  # type: ignore[dict-item]  # all it is asked
    }
    machine = WorkerBoot(node_name="w@here", capacity=1, backends=backends)
    asked: list[None] = []
    monkeypatch.setattr(worker, "platform_scope", lambda: asked.append(None))

    worker.WorkerProcess(machine).shutdown()

    assert (stopped, asked) == (["shared"], [])
