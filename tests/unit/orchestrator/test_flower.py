"""Flower keeps no more than it shows, none of its pages is without login, and it says why it cannot be served."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from flower import urls
from tornado.web import RequestHandler, url

from orchestrator.flower import (
    OPEN_PATHS,
    PRUNE_EVERY,
    BoundedState,
    BrokerOnSocket,
    path_of,
    watching_app,
)

ROOT = Path(__file__).parents[3]
clock = count(1)


def run(state: BoundedState, pairs: Iterable[tuple[str, str]]) -> None:
    """One task of that worker and name each, from its receipt to its end."""
    for worker, name in pairs:
        number = next(clock)
        common: dict[str, Any] = {"hostname": worker, "uuid": f"task-{number}", "pid": 1}
        common |= {"timestamp": number, "local_received": number, "clock": number, "utcoffset": 0}
        state.inspected[worker] = {"stats": {}}
        state.event({**common, "type": "worker-heartbeat", "freq": 2, "active": 1})
        state.event({**common, "type": "task-received", "name": name, "args": "", "kwargs": ""})
        state.event({**common, "type": "task-started"})
        state.event({**common, "type": "task-succeeded", "runtime": 0.1, "result": "None"})


def sizes(state: BoundedState) -> dict[str, int]:
    """Return the size of each container of the state."""
    return {name: len(held) for name, held in vars(state).items() if hasattr(held, "__len__")}


def test_neither_names_nor_boots_make_the_memory_grow() -> None:
    state = BoundedState(inspected={}, max_tasks_in_memory=50, max_workers_in_memory=20)
    rounds = PRUNE_EVERY // 4
    found = []
    for turn in range(3):
        run(state, ((f"w{turn}-{i}@here", f"flow{turn}-{i}/step") for i in range(rounds)))
        found.append(sizes(state))
    assert found[0] == found[1] == found[2]
    assert {"counter", "inspected", "workers", "tasks_by_type", "_seen_types"} <= found[0].keys()
    assert max(found[0].values()) <= 50 * state.heap_multiplier
    assert found[0]["counter"] == found[0]["inspected"] == 20
    assert state.task_types() == sorted({task.name for task in state.tasks.values()})


def test_both_kinds_of_entries_have_a_path() -> None:
    assert path_of(("/metrics", RequestHandler)) == "/metrics"
    assert path_of(url(r"/tasks", RequestHandler)) == "/tasks"


def test_the_open_pages_are_among_those_of_the_installed_flower() -> None:
    assert {path_of(handler) for handler in urls.handlers} >= OPEN_PATHS


def test_it_looks_at_lanes_as_the_user_of_its_address() -> None:
    url = (
        watching_app("unix://isolane_flower:pw@/run/x.sock")
        .connection()
        .as_uri(include_password=True)
    )
    asked = BrokerOnSocket(url).redis.connection_pool.connection_kwargs
    assert (asked["username"], asked["password"]) == ("isolane_flower", "pw")


def test_it_needs_the_broker_and_its_login_alone_and_a_port_that_is_taken_is_one_line(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", "flower", "--port", str(port)],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "ISOLANE_HOME": str(tmp_path),
                "REDIS_URL": "redis://127.0.0.1:1/0",
                "FLOWER_PASSWORD": "a password",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Error: Flower cannot listen on 127.0.0.1:{port}: ")
    assert refused.stderr.count("\n") == 1
