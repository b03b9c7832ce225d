"""What is left of runtimes at every level when their backend has stopped: nothing. And what a backend is built from."""

import contextlib
import os
from pathlib import Path

import psutil
import pytest

from resources.runtimes.base import RuntimeBackend, RuntimeStartError
from resources.runtimes.folder import PREFIX
from tests.integration.resources.runtimes.conftest import Driver, sleepers, wait_until
from tests.integration.resources.runtimes.contract.conftest import NODES, TASKS, Build, Start
from tests.integration.resources.runtimes.contract.levels import LEVELS
from tests.placements import ACME, a_placement


def machine() -> dict[str, set[str]]:
    """Return what this process, and those that it started, have of the machine."""
    own = psutil.Process()
    processes = {str(child.pid) for child in own.children(recursive=True)}
    return {
        "processes": processes,
        "namespaces": {space for pid in processes for space in namespaces(pid)},
        "descriptors": {path.name for path in Path("/proc/self/fd").iterdir()},
        "folders": held_folders(),
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": {str(path) for path in cgroups(os.getpid())},
    }


def held_folders() -> set[str]:
    """The folders of runtimes that this process holds: others in the same directory are other workers'."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(descriptor.readlink()))
    return {path for path in found if PREFIX in path}


def namespaces(pid: str) -> list[str]:
    found = []
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{pid}/ns/{kind}"))  # noqa: PTH115 - it is no path
    return found


def cgroups(worker: int) -> list[Path]:
    """The groups that were made by a process, in all hierarchies."""
    own = f"isolane-{worker}-"
    return [
        Path(root, name)
        for root, names, _ in os.walk("/sys/fs/cgroup")  # what goes meanwhile is passed over
        for name in names
        if name.startswith(own)
    ]


def test_nothing_is_left_behind(build: Build, start: Start, times: tuple[str, str]) -> None:
    start().close(5)  # from now on there is a zygote
    before = machine()
    backend = build()
    tidy = start(on=backend, tenant_id="acme")
    Driver(tidy).output("test.identity")
    untidy = start(on=backend, tenant_id="globex")
    during = machine()
    assert during["processes"] > before["processes"]
    assert during["descriptors"] > before["descriptors"]
    Driver(untidy).output("test.leave_traces")
    Driver(untidy).output("test.leave_thread")
    Driver(untidy).output("contract.start_processes", {"child": times[0], "daemon": times[1]})
    for runtime in (tidy, untidy):
        runtime.close(5)
    dead = start(on=backend, tenant_id="acme")
    Driver(dead).run("test.exit", {"code": 7})
    dead.close(5)
    backend.sweep()
    backend.stop()
    assert sleepers(*times) == []
    wait_until(lambda: not [name for name, found in machine().items() if found != before[name]])
    made = during["folders"] - before["folders"]
    assert [path for path in made if Path(path).exists()] == []


# --- what it is built from
def test_a_package_that_cannot_be_imported_is_named(build: Build) -> None:
    backend = build(packages=("tests.nowhere",))
    reason = "package tests.nowhere cannot be imported: ModuleNotFoundError"
    with pytest.raises(RuntimeStartError, match=reason):
        backend.describe()
    with pytest.raises(RuntimeStartError, match=reason):
        backend.start(a_placement(), identity=ACME)


def test_packages_are_found_on_the_paths_given(build: Build, tmp_path: Path) -> None:
    source = (
        "from isolane import node\n@node('own.one')\ndef one(ctx): return 1\n__version__ = '2.5'\n"
    )
    (tmp_path / "own_nodes.py").write_text(source)
    catalogue = build(packages=("own_nodes",), paths=[tmp_path]).describe()
    assert "own.one" in {node.name for node in catalogue.nodes}
    assert catalogue.packages["own_nodes"] == "2.5"


def test_the_catalogue_is_the_same_at_every_level(
    backend: RuntimeBackend, backends: dict[str, RuntimeBackend]
) -> None:
    first = next(iter(LEVELS))
    if first not in backends:
        backends[first] = LEVELS[first].build(level=first, size=4, packages=NODES, tasks=TASKS)
    assert backend.describe() == backends[first].describe()
