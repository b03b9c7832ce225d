"""orchestrator.celery: a worker that is pointed at nothing ends, and what messages and events cost."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from orchestrator.broker import LaneConnection
from orchestrator.celery import app

ROOT = Path(__file__).parents[3]


def worker(home: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """A worker in an environment of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "celery", "-A", "orchestrator", "worker"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "ISOLANE_HOME": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_worker_needs_no_signing_key_and_says_what_it_misses(tmp_path: Path) -> None:
    named = {"DATABASE_URL": "postgresql://nowhere/x", "BASE_HOST": "isolane.example.com"}
    ended = worker(tmp_path, **named, REDIS_URL="redis://127.0.0.1:1/0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("ENCRYPTION_KEYS is not set.")
    assert ended.stderr.count("\n") == 1


def test_a_worker_without_a_platform_ends_at_once(tmp_path: Path) -> None:
    ended = worker(tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "No platform runs here: start one with make up, or set DATABASE_URL and REDIS_URL.\n"
    )


def test_settings_are_looked_up_in_a_plain_mapping() -> None:
    assert app.conf.task_ignore_result is settings.CELERY_TASK_IGNORE_RESULT is True
    assert type(app.loader.conf) is dict


def test_a_message_shows_its_arguments_and_declares_nothing() -> None:
    sent: dict[str, Any] = {}

    class Producer:
        def publish(self, body: Any, **options: Any) -> None:
            sent.update(options, body=body)

    message = app.amqp.create_task_message("id", "task", (1, "x"), {"a": 2})
    app.amqp.send_task_message(Producer(), "task", message, queue="lane.test")
    assert not sent["declare"]
    assert (sent["headers"]["argsrepr"], sent["headers"]["kwargsrepr"]) == ("(1, 'x')", "{'a': 2}")


def test_a_heartbeat_is_tried_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that sends it is the one that notices that the broker is away, and that stops."""
    sent: list[dict[str, Any]] = []

    def publish(_producer: Any, _event: Any, **options: Any) -> None:
        sent.append(options)
        raise OSError("away")

    monkeypatch.setattr("kombu.Producer.publish", publish)
    dispatcher = app.events.Dispatcher(LaneConnection("redis+socket:///nowhere.sock"))
    dispatcher.send("worker-heartbeat", retry=True, freq=2)
    assert [options["retry"] for options in sent] == [False]
    assert len(dispatcher._outbound_buffer) == 1
