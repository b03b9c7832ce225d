"""Flower as it is served: wrong logins are slowed, and nothing is shown before a right one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from orchestrator.embedded.ports import choose_port
from tests.waiting import wait_for

ROOT = Path(__file__).parents[3]


@pytest.fixture
def flower(servers: None, tmp_path: Path) -> Iterator[httpx.Client]:
    port, _ = choose_port(25555, "127.0.0.1")
    environment = {**os.environ, "ISOLANE_HOME": str(tmp_path), "FLOWER_PASSWORD": "a password"}
    del environment["ISOLANE_LOG_LEVEL"]  # as a terminal has it
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli", "flower", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stderr=log,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(lambda: _answers(client), "Flower to answer")
            yield client
    finally:
        process.kill()
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/").status_code == 401
    except httpx.HTTPError:
        return False


def test_wrong_logins_are_slowed_and_logged(flower: httpx.Client, tmp_path: Path) -> None:
    right = ("admin", "a password")
    assert flower.get("/tasks", auth=right).status_code == 200
    for path in ("/", "/api/workers", "/static/css/flower.css", "/no/such/page"):
        asked = flower.get(path)
        assert (asked.status_code, asked.headers["WWW-Authenticate"]) == (
            401,
            'Basic realm="flower"',
        )
    found = [flower.post("/api/workers", auth=("admin", f"guess-{number}")) for number in range(12)]
    assert [answer.status_code for answer in found[:6]] == [401] * 6
    assert 429 in {answer.status_code for answer in found[6:]}
    refused = flower.get("/tasks", auth=right)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    log = (tmp_path / "log").read_text()
    assert '"event": "LOGIN_FAILED", "address": "127.0.0.1"' in log
    assert "guess" not in log
