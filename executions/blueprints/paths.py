"""Paths into a document, as errors name them: `$.steps[1].with.x`. Pure.

A path is bounded like everything that a message quotes: a long key with many values below it would be repeated.
"""

from collections.abc import Iterable

from executions.blueprints.errors import SHOWN, shown

ROOT = "$"


def child(where: str, key: str) -> str:
    """Return the path of a mapping's value."""
    return where if _is_truncated(where) else shown(f"{where}.{key[:SHOWN]}")


def item(where: str, index: int) -> str:
    """Return the path of a list's item."""
    return where if _is_truncated(where) else shown(f"{where}[{index}]")


def path_of(parts: Iterable[str | int], root: str = ROOT) -> str:
    """Return the path over these keys and indexes."""
    where = root
    for part in parts:
        where = item(where, part) if isinstance(part, int) else child(where, part)
    return where


def parent(path: str) -> str:
    """Return the path of the container; empty above the root."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]


def _is_truncated(path: str) -> bool:
    return len(path) == SHOWN and path.endswith("…")
