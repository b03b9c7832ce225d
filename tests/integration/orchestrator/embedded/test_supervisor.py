"""Supervision of small real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from orchestrator.embedded.child import LAUNCHER, LOG_LIMIT, ServerProcess, log_path
from orchestrator.embedded.errors import ChildFailed
from orchestrator.embedded.supervisor import StopRequested, Supervisor
from tests.integration.orchestrator.embedded.waiting import is_gone, wait_until

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); " + SLEEP
# Has a child in its own process group, and one with a session of its own.
PARENT = f"""
import subprocess, sys
for own_session in (False, True):
    subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=own_session)
print("parent", flush=True)
{SLEEP}
"""


def python(name: str, code: str, **options: object) -> ServerProcess:
    return ServerProcess(name=name, argv=(sys.executable, "-c", code), **options)  # type: ignore[arg-type]


def said(logs: Path, name: str, text: str) -> Callable[[], bool]:
    return lambda: text in log_path(logs, name).read_text()


def test_a_child_is_started_once_its_predecessor_is_ready_and_stopped_before_it(
    tmp_path: Path,
) -> None:
    events: list[tuple[str, str]] = []
    with Supervisor(tmp_path, on_event=lambda *event: events.append(event)) as supervisor:
        code = f"print('up', flush=True); {SLEEP}"
        supervisor.start(python("first", code, ready=said(tmp_path, "first", "up")))
        supervisor.start(python("second", code))
        assert list(supervisor.pids) == ["first", "second"]

    assert [(name, what.partition(" (")[0]) for name, what in events] == [
        ("first", "started"),
        ("first", "ready"),
        ("second", "started"),
        ("second", "ready"),
        ("second", "stopped"),
        ("first", "stopped"),
    ]
    assert supervisor.pids == {}


def test_children_can_be_started_side_by_side(tmp_path: Path) -> None:
    events: list[tuple[str, str]] = []
    with Supervisor(tmp_path, on_event=lambda *event: events.append(event)) as supervisor:
        # The first is ready only once the second is there.
        first = python("first", SLEEP, ready=lambda: "second" in supervisor.pids)
        supervisor.start(first, python("second", SLEEP))
        assert list(supervisor.pids) == ["first", "second"]

    assert [name for name, what in events if what.startswith("started")] == ["first", "second"]
    assert [name for name, what in events if what == "stopped"] == ["second", "first"]


def test_one_of_several_that_fails_is_the_one_told(tmp_path: Path) -> None:
    failing = python("brief", "import sys; sys.exit('no luck today')", ready=lambda: False)
    with (
        Supervisor(tmp_path) as supervisor,
        pytest.raises(ChildFailed, match=r"(?s)^brief .*no luck today"),
    ):
        supervisor.start(python("patient", SLEEP, ready=lambda: False), failing)
    assert supervisor.pids == {}


def test_a_child_that_ends_at_once_fails_with_what_it_said(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    child = python("brief", "import sys; sys.exit('no luck today')", ready=lambda: False)

    with pytest.raises(ChildFailed, match=r"(?s)brief ended \(exit status 1\).*no luck today"):
        supervisor.start(child)
    assert supervisor.pids == {}


def test_a_program_that_is_not_there_fails_in_words(tmp_path: Path) -> None:
    child = ServerProcess(name="absent", argv=("/nowhere/program",), ready=lambda: False)

    with pytest.raises(ChildFailed, match="/nowhere/program"):
        Supervisor(tmp_path).start(child)


def test_a_child_that_never_becomes_ready_fails_and_is_gone(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    pids: list[int] = []

    def never() -> bool:
        pids.append(supervisor.pids["slow"])
        return False

    with pytest.raises(ChildFailed, match=r"not ready within 0\.2 s"):
        supervisor.start(python("slow", SLEEP, ready=never, ready_timeout=0.2))
    assert not psutil.pid_exists(pids[0])


def test_a_crashed_child_is_restarted_and_its_group_does_not_outlive_it(tmp_path: Path) -> None:
    events: list[str] = []
    with Supervisor(tmp_path, on_event=lambda _name, what: events.append(what)) as supervisor:
        supervisor.start(python("parent", PARENT, ready=said(tmp_path, "parent", "parent")))
        crashed = psutil.Process(supervisor.pids["parent"])
        same_group = [c for c in crashed.children() if os.getpgid(c.pid) == crashed.pid]
        elsewhere = [c for c in crashed.children() if c not in same_group]
        crashed.kill()

        def restarted() -> bool:
            supervisor.poll()
            return supervisor.pids.get("parent", crashed.pid) != crashed.pid

        wait_until(restarted)
        wait_until(lambda: all(map(is_gone, same_group)))
        for left in elsewhere:
            left.kill()  # an orphan with a session of its own has to look after itself

    assert len(same_group) == 1
    assert "ended (killed by SIGKILL), restart in 0.5 s" in events


def test_a_child_that_shall_not_be_restarted_is_not(tmp_path: Path) -> None:
    events: list[str] = []
    with Supervisor(tmp_path, on_event=lambda _name, what: events.append(what)) as supervisor:
        supervisor.start(python("once", "", restart=False))

        def ended() -> bool:
            supervisor.poll()
            return "ended (exit status 0)" in events

        wait_until(ended)
        supervisor.poll()
        assert supervisor.pids == {}


def test_a_stop_takes_the_whole_family(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.start(python("parent", PARENT, ready=said(tmp_path, "parent", "parent")))
    family = psutil.Process(supervisor.pids["parent"]).children()
    supervisor.stop_all()

    assert len(family) == 2
    assert all(map(is_gone, family))


def test_a_child_deaf_to_its_stop_signal_is_killed_after_its_timeout(tmp_path: Path) -> None:
    events: list[str] = []
    supervisor = Supervisor(tmp_path, on_event=lambda _name, what: events.append(what))
    ready = said(tmp_path, "deaf", "deaf")
    supervisor.start(python("deaf", DEAF, ready=ready, stop_timeout=0.2))
    supervisor.stop_all()

    assert events[-1] == "killed, because it did not stop in time"


def test_ctrl_c_hastens_a_stop(tmp_path: Path) -> None:
    # Answers its stop signal with a Ctrl-C for the supervisor.
    code = f"""
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.kill({os.getpid()}, signal.SIGINT))
print("set", flush=True)
while True:
    signal.pause()
"""
    supervisor = Supervisor(tmp_path)
    supervisor.start(python("rude", code, ready=said(tmp_path, "rude", "set"), stop_timeout=100))
    before = signal.getsignal(signal.SIGINT)

    started = time.monotonic()
    supervisor.stop_all()

    assert time.monotonic() - started < 50
    assert supervisor.pids == {}
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_ends_on_a_signal_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    supervisor = Supervisor(tmp_path)
    supervisor.start(python("sleeper", SLEEP))
    process = psutil.Process(supervisor.pids["sleeper"])
    # Keeps on until the supervisor listens: before that, the signal would end the tests.
    code = f"""
import os
while not int([line.split()[1] for line in open('/proc/{os.getpid()}/status')
               if line.startswith('SigCgt')][0], 16) >> {number - 1} & 1:
    pass
os.kill({os.getpid()}, {int(number)})
{SLEEP}
"""
    with supervisor:
        supervisor.start(python("caller", code))
        supervisor.run()

    assert is_gone(process)
    assert signal.getsignal(number) is before


def test_a_signal_within_the_block_raises_and_stops(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    processes: list[psutil.Process] = []

    def work() -> None:
        with supervisor:
            supervisor.start(python("sleeper", SLEEP))
            processes.append(psutil.Process(supervisor.pids["sleeper"]))
            os.kill(os.getpid(), signal.SIGTERM)
            wait_until(lambda: False)

    with pytest.raises(StopRequested):
        work()
    assert is_gone(processes[0])


def test_output_is_appended_and_a_big_log_put_aside(tmp_path: Path) -> None:
    log = log_path(tmp_path, "chatty")
    log.write_text("before\n")
    with Supervisor(tmp_path) as supervisor:
        supervisor.start(python("chatty", "print('now')", restart=False))
        wait_until(lambda: log.read_text() == "before\nnow\n")
    os.truncate(log, LOG_LIMIT + 1)
    with Supervisor(tmp_path) as supervisor:
        supervisor.start(python("chatty", "print('now')", restart=False))
        wait_until(lambda: log.read_text() == "now\n")

    assert (tmp_path / "chatty.log.1").stat().st_size == LOG_LIMIT + 1


def test_a_child_has_its_own_session_default_signals_and_no_input(tmp_path: Path) -> None:
    # Read by the shell itself: while it waits for a program it blocks signals.
    masks_of_shell = (
        "while read -r name value; do case $name in SigBlk:|SigIgn:) echo $name $value;; esac; "
        "done </proc/$$/status"
    )
    script = f"cat; env; {masks_of_shell}; echo end; sleep 600"
    child = ServerProcess(
        name="plain",
        argv=("sh", "-c", script),
        env={"PATH": os.defpath, "A": "1"},
        ready=said(tmp_path, "plain", "end"),
    )
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as a shell does for a background job
    try:
        with Supervisor(tmp_path) as supervisor:
            supervisor.start(child)
            assert os.getsid(supervisor.pids["plain"]) == supervisor.pids["plain"]
    finally:
        signal.signal(signal.SIGQUIT, before)
    output = log_path(tmp_path, "plain").read_text()

    assert "A=1\n" in output
    assert "HOME" not in output
    # Numbers above 31 belong to the C library, which may have been started with one ignored.
    masks = [int(line.split()[1], 16) for line in output.splitlines() if line.startswith("Sig")]
    assert [mask & 0x7FFFFFFF for mask in masks] == [0, 0], output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user")
def test_a_child_runs_as_the_user_it_is_told(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        argv = ("sh", "-c", "id -u; id -g; id -G; sleep 600")
        supervisor.start(ServerProcess(name="id", argv=argv, user=12345, group=12346))
        wait_until(said(tmp_path, "id", "12345\n12346\n12346\n"))


def test_a_child_whose_supervisor_died_before_it_asked_does_not_run() -> None:
    another_parent = "1"
    completed = subprocess.run(
        [sys.executable, LAUNCHER, another_parent, "9", "-", "-", "/bin/echo", "ran"],
        capture_output=True,
        check=True,
    )

    assert completed.stdout == b""
