"""A supervising process for the tests: `python -m … HOME` runs the servers until a signal."""

import os
import signal
import sys
from pathlib import Path

from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.state import (
    StackState,
    own_start_time,
    remove_state,
    stack_lock,
    write_state,
)
from orchestrator.embedded.supervisor import Supervisor

# Stands for web and workers, and takes no notice of anything but SIGKILL.
DEAF = """
import signal, time
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
time.sleep(600)
"""


def main(home: Path) -> None:
    paths = EmbeddedPaths(home)
    paths.prepare_home()
    servers = EmbeddedServers(paths, durable=True)
    with stack_lock(paths.lock_file):
        servers.prepare()
        with Supervisor(paths.logs) as supervisor:
            for child in servers.children():
                supervisor.start(child)
            servers.bootstrap()
            supervisor.start(
                ServerProcess(
                    name="deaf", argv=(sys.executable, "-c", DEAF), stop_signal=signal.SIGKILL
                )
            )
            state = StackState(
                pid=os.getpid(), started_at=own_start_time(), children=supervisor.pids
            )
            write_state(paths.state_file, state)
            supervisor.run()
        remove_state(paths.state_file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
