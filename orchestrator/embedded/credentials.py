"""Credentials as files that only their owner may read, so that no environment contains one.

Timing: before a stack's processes start, and after they have ended.
Model: sync.
Guarantee: idempotent; a reader sees the old content or the new.
Failure: bubble.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from orchestrator.embedded.private_files import make_private_directory, replace_private


def write_credentials(directory: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Write one file for each variable; return the `…_FILE` variables with their paths."""
    make_private_directory(directory)
    for name, value in values.items():
        replace_private(directory / name, f"{value}\n")
    return {f"{name}_FILE": str(directory / name) for name in values}


def remove_credentials(directory: Path) -> None:
    """Remove all credential files; no error if there are none."""
    shutil.rmtree(directory, ignore_errors=True)
