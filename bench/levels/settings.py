"""The platform's settings with timed backends. For the benchmark only."""

from orchestrator.settings import *  # noqa: F403 - Django takes settings from the names of one module
from orchestrator.settings import RUNTIMES as _RUNTIMES

RUNTIMES = {
    "shared": {**_RUNTIMES["shared"], "BACKEND": "bench.levels.timed.TimedSharedBackend"},
    "process": {**_RUNTIMES["process"], "BACKEND": "bench.levels.timed.TimedProcessBackend"},
}
