"""resources.runtimes.usable_ram: the machine's RAM, or less."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from resources.runtimes import usable_ram
from resources.runtimes.usable_ram import usable_ram_mb

MB = 1 << 20


@pytest.mark.parametrize(
    ("controller", "name", "limits", "found"),
    [
        ("", "memory.max", {"a/b": "max", "a": "max"}, 8192),
        ("", "memory.max", {"a/b": str(2048 * MB), "a": "max"}, 2048),
        ("", "memory.max", {"a/b": "max", "a": str(1024 * MB)}, 1024),
        ("memory", "memory.limit_in_bytes", {"a/b": str(1 << 62), "a": str(512 * MB)}, 512),
        ("cpu", "memory.max", {"a/b": str(MB)}, 8192),
        ("", "memory.max", {}, 8192),
    ],
)
def test_it_is_the_least_of_all_limits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    controller: str,
    name: str,
    limits: dict[str, str],
    found: float,
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    for group, limit in limits.items():
        (tmp_path / group / name).write_text(f"{limit}\n")
    machine = SimpleNamespace(total=8192 * MB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    monkeypatch.setattr(usable_ram, "own_directories", lambda *_: {controller: tmp_path / "a/b"})
    assert usable_ram_mb() == found


def test_this_process_may_use_some() -> None:
    assert 64 < usable_ram_mb() <= psutil.virtual_memory().total / MB
