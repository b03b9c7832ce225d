"""The state file tells only of what runs; the lock admits one."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.embedded.errors import AlreadyRunning, EmbeddedError
from orchestrator.embedded.state import (
    StackState,
    own_start_time,
    read_running,
    remove_state,
    stack_lock,
    write_state,
)

HOLD_LOCK = """
import sys
from pathlib import Path
from orchestrator.embedded.state import stack_lock
with stack_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def running() -> StackState:
    return StackState(
        pid=os.getpid(),
        started_at=own_start_time(),
        web_url="http://127.0.0.1:8000",
        children={"postgres": 1234},
    )


def test_a_running_stack_is_read_back(tmp_path: Path, running: StackState) -> None:
    path = tmp_path / "state.json"
    write_state(path, running)

    assert read_running(path) == running
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pid_that_another_process_got_is_not_the_stack(
    tmp_path: Path, running: StackState
) -> None:
    path = tmp_path / "state.json"
    write_state(path, replace(running, started_at=running.started_at - 60))

    assert read_running(path) is None


def test_a_dead_process_is_not_the_stack(tmp_path: Path, running: StackState) -> None:
    path = tmp_path / "state.json"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    write_state(path, replace(running, pid=ended.pid))

    assert read_running(path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"unknown": 1}'])
def test_an_unreadable_state_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)

    assert read_running(path) is None


def test_no_file_is_no_stack(tmp_path: Path) -> None:
    remove_state(tmp_path / "state.json")

    assert read_running(tmp_path / "state.json") is None


def test_the_state_of_another_user_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)  # root may read everything
    with pytest.raises(EmbeddedError, match=r"another user's stack.*ISOLANE_HOME$") as refused:
        read_running(tmp_path / "state.json")
    assert str(tmp_path / "state.json") in str(refused.value)


def test_the_lock_refuses_a_second_holder_and_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        stack_lock(path),
        pytest.raises(AlreadyRunning, match=str(os.getpid())) as refused,
        stack_lock(path),
    ):
        pass
    assert refused.value.pid == os.getpid()

    with stack_lock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning), stack_lock(path):
            pass
        holder.kill()
        holder.wait()

    with stack_lock(path):
        pass
