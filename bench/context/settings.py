"""The platform's settings and one more level, which has no context. For the benchmark only."""

from orchestrator.settings import *  # noqa: F403 - Django takes settings from the names of one module
from orchestrator.settings import RUNTIMES as _RUNTIMES

# It has the name of a level that blueprints may choose. The same workers offer both, so nothing else differs.
RUNTIMES = {
    **_RUNTIMES,
    "process": {**_RUNTIMES["shared"], "BACKEND": "bench.context.bare.BareBackend"},
}
