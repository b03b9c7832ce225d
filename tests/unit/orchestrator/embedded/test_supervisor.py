"""The arithmetic of supervision."""

import signal
import threading
from pathlib import Path

import pytest

from orchestrator.embedded.child import ServerProcess, describe_exit
from orchestrator.embedded.supervisor import Supervisor, restart_delay


def test_restarts_become_rarer_up_to_a_limit() -> None:
    assert [restart_delay(crashes) for crashes in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]
    assert restart_delay(10_000) == 10


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit status 0"),
        (3, "exit status 3"),
        (-signal.SIGKILL, "killed by SIGKILL"),
        (-35, "killed by signal 35"),
    ],
)
def test_an_exit_status_in_words(status: int, words: str) -> None:
    assert describe_exit(status) == words


def test_children_are_refused_outside_the_main_thread(tmp_path: Path) -> None:
    refused: list[RuntimeError] = []

    def start() -> None:
        try:
            Supervisor(tmp_path).start(ServerProcess(name="x", argv=("true",)))
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert refused
    assert list(tmp_path.iterdir()) == []
