"""The file in which a process says that it is ready, for whoever has started it."""

import os
from pathlib import Path


def write_ready_file(path: str, name: str = "") -> None:
    """Write the own process id, and a name if there is one; without a path nothing."""
    if path:
        Path(path).write_text(f"{os.getpid()} {name}", encoding="utf-8")
