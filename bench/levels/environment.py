"""Additional environment variables of the processes. Pure."""

from bench.levels.starts import STARTS

NODES = "bench.levels.nodes"


def added(starts: str) -> dict[str, str]:
    """Return the settings with timed backends, the node, and the directory of starts."""
    return {
        "DJANGO_SETTINGS_MODULE": "bench.levels.settings",
        "ISOLANE_NODE_PACKAGES": NODES,
        STARTS: starts,
    }
