"""`python -m tests.integration.resources.runtimes.host`: a process with credentials that runs a step, as a worker does.

It prints what the step found when it looked into this process.
"""

import json
import os
import sys
import threading
import time

from isolane.protocol import Run
from orchestrator import env
from resources.runtimes.shared import SharedBackend
from tests.placements import ACME, a_placement

NODES = "tests.integration.resources.runtimes.proc_nodes"
SECONDS = 30.0


def main() -> None:
    """Read the credentials, then run the step."""
    assert env.read().secret_key
    pool = SharedBackend(level="shared", size=1, packages=[NODES])
    runtime = pool.start(a_placement(), identity=ACME)
    runtime.open()
    try:
        result = runtime.run(
            Run(
                step="look",
                uses="proc.look_into",
                parameters={"pids": [os.getpid()]},
                variables={},
                attempt=0,
                seed=7,
                timeout_s=SECONDS,
                idempotency_key="key",
            ),
            deadline=time.monotonic() + SECONDS,
            cancelled=threading.Event(),
            on_frame=lambda _: None,
        )
    finally:
        runtime.close(5)
        pool.stop()
    json.dump(result.output, sys.stdout)


if __name__ == "__main__":
    main()
