"""`python -m tests.integration.resources.runtimes.killed_host …`: a worker with a run at each level, to be killed.

It gets two times to sleep for each level, runs a step that sleeps so, and prints its zygote's process id when both do.
"""

import sys
import threading
import time

from resources.runtimes.base import RuntimeBackend
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import Driver
from tests.placements import ACME, a_placement

NODES = ["tests.integration.resources.runtimes.contract.nodes"]


def main() -> None:
    """Run both steps for ever."""
    shared = SharedBackend(level="shared", size=1, packages=NODES)
    process = ProcessBackend(level="process", size=1, packages=NODES)
    for backend in (shared, process):
        backend.keepalive(until=time.monotonic() + 600)
        child, daemon = sys.argv[1:3] if backend is shared else sys.argv[3:5]
        run(backend, {"child": child, "daemon": daemon, "seconds": 600})
    print(process.zygote.pid, flush=True)  # noqa: T201 - for the test
    time.sleep(600)


def run(backend: RuntimeBackend, parameters: dict[str, object]) -> None:
    """Return when the step has started its processes."""
    started = threading.Event()
    runtime = backend.start(a_placement(), identity=ACME)
    runtime.open()
    driver = Driver(runtime, on_progress=started.set)
    step = ("contract.start_processes", parameters)
    threading.Thread(target=driver.run, args=step, kwargs={"seconds": 600}, daemon=True).start()
    started.wait()


if __name__ == "__main__":
    main()
