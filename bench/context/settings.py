"""The platform's settings, and one more level: the bench-only switch that turns the context off."""

from orchestrator.settings import *  # noqa: F403 - Django takes settings from the names of one module
from orchestrator.settings import RUNTIMES as _RUNTIMES

# It bears the name of a level that blueprints may ask for. The same workers offer both, so nothing else differs.
RUNTIMES = {
    **_RUNTIMES,
    "process": {**_RUNTIMES["shared"], "BACKEND": "bench.context.bare.BareBackend"},
}
