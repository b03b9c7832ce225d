"""Flower's pages that know no login are found whatever way it lists them; it says why it cannot be served."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from flower import urls
from tornado.web import RequestHandler, url

from orchestrator.flower import OPEN_PATHS, path_of

ROOT = Path(__file__).parents[3]


def test_both_kinds_of_entries_have_a_path() -> None:
    assert path_of(("/metrics", RequestHandler)) == "/metrics"
    assert path_of(url(r"/tasks", RequestHandler)) == "/tasks"


def test_the_open_pages_are_among_those_of_the_installed_flower() -> None:
    assert {path_of(handler) for handler in urls.handlers} >= OPEN_PATHS


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", "flower", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "ISOLANE_HOME": str(tmp_path), "FLOWER_PASSWORD": "a password"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Error: Flower cannot listen on 127.0.0.1:{port}: ")
    assert refused.stderr.count("\n") == 1
