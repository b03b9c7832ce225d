"""`python -m tests.integration.resources.runtimes.process.own_interpreter`: a step changes the program that it runs in.

Prints what the step saw, and the mode of the interpreter's file afterwards.
"""

import contextlib
import json
import stat
import sys
import threading
import time
from pathlib import Path

from resources.runtimes.base import RunIdentity
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import a_run
from tests.placements import a_placement

NODES = "tests.integration.resources.runtimes.process.hostile_nodes"


def main() -> None:
    """Run one step."""
    backend = ProcessBackend(level="process", size=1, packages=[NODES])
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(backend.stop)
        found = backend.availability()
        assert found.ok, found.reason
        runtime = backend.start(a_placement(), identity=RunIdentity(tenant="acme"))
        stack.callback(runtime.close, 5)
        runtime.open()
        result = runtime.run(
            a_run("hostile.change_own_program", {}),
            deadline=time.monotonic() + 20,
            cancelled=threading.Event(),
            on_frame=lambda _: None,
        )
    mode = stat.S_IMODE(Path(sys.executable).stat().st_mode)
    json.dump({"output": result.output, "message": result.message, "mode": mode}, sys.stdout)


if __name__ == "__main__":
    main()
