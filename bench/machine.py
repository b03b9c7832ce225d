"""A description of the machine; figures mean nothing without it."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("isolane", "celery", "kombu", "django", "psycopg", "redis")
QUIET_LOAD = 0.3  # per core


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def describe(*, load_before: float, data: Path, postgres: str, valkey: str) -> dict[str, Any]:
    """Return cores, load before the start, file system of the data, and all versions."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu(),
        "ram_mb": psutil.virtual_memory().total // 2**20,
        "load_before": load_before,
        "kernel": platform.release(),
        "file_system": _file_system(data),
        "python": platform.python_version(),
        "postgres": postgres,
        "valkey": valkey,
        **{name: version(name) for name in PACKAGES},
    }


def is_busy(machine: dict[str, Any]) -> bool:
    """Return True if the machine was busy at the start, so that the figures are worth little."""
    return bool(machine["load_before"] > QUIET_LOAD * machine["cores"])


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(path: Path) -> str:
    """Return the type of the file system: on tmpfs an fsync costs nothing."""
    mounts = [part for part in psutil.disk_partitions(all=True) if _below(path, part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else "unknown"


def _below(path: Path, mountpoint: str) -> bool:
    return path.resolve().is_relative_to(mountpoint)
