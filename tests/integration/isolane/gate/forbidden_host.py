"""Ways, tried in `tests.own_network`: directly, and in a sandbox of a run that has declared nothing."""

import os
import threading
import time
from typing import Any

from isolane.limits import RunLimits
from isolane.protocol import Run
from isolane.sandbox.spec import Wall
from resources.runtimes.base import RunIdentity
from resources.runtimes.process import ProcessBackend
from resources.runtimes.sandbox import ALL_WALLS
from tests.forbidden_targets import ForbiddenTargets
from tests.integration.isolane.gate.forbidden_nodes import tried
from tests.placements import a_placement

NODES = "tests.integration.isolane.gate.forbidden_nodes"
SECONDS = 60.0


def directly(targets: ForbiddenTargets, given: Any) -> dict[str, str]:
    """Try the ways without any wall, where an undeclared name has an address, too."""
    for name in given["known_names"]:
        targets.names.addresses[name] = ["10.66.0.1"]
    return tried(given["names"], given["facts"])


def in_a_sandbox(targets: ForbiddenTargets, given: Any) -> dict[str, Any]:
    """Try them in a step, of a sandbox without the walls that are named."""

    class Backend(ProcessBackend):
        walls = ALL_WALLS - {Wall(name) for name in given.get("without", [])}

    backend = Backend(level="process", size=1, packages=[NODES])
    try:
        found = backend.availability()
        if not found.ok:
            return {"unavailable": found.reason}
        return {"ends": _run(backend, given["names"], given["facts"])}
    finally:
        backend.stop()


def _run(backend: ProcessBackend, names: list[str], facts: Any) -> dict[str, Any]:
    """Return the end of one run that tries these ways."""
    placement = a_placement(f"{os.getpid()} {names[0]}")
    limits = RunLimits(processes=64, seconds=SECONDS)
    runtime = backend.start(placement, identity=RunIdentity(tenant="acme"), limits=limits)
    run = Run(
        step="try", uses="forbidden.try", parameters={"names": names, "facts": facts}, variables={},
        attempt=0, seed=7, timeout_s=SECONDS, idempotency_key="key",
    )  # fmt: skip
    try:
        runtime.open()
        result = runtime.run(
            run,
            deadline=time.monotonic() + SECONDS,
            cancelled=threading.Event(),
            on_frame=lambda _: None,
        )
    finally:
        runtime.close(5)
    return {
        "status": result.status,
        "code": result.code,
        "message": result.message,
        "output": result.output,
    }
