"""The limit of RAM where no cgroup counts it: a run is charged for its own memory, and not for that of the zygote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from resources.runtimes.base import RunIdentity
from resources.runtimes.cgroups.detection import CgroupFinding
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import Driver, why_not
from tests.placements import a_placement

LIMITS = RunLimits(ram_mb=64, processes=32, disk_mb=8)
PACKAGE = """
import os
import time

from isolane import NodeContext, node

LARGE = bytearray(b"x" * (300 << 20))  # more than a run may use, and shared with all of them


@node("large.use")
def use(ctx: NodeContext, *, megabytes: int, children: int) -> str:
    kept = bytearray(b"x" * (megabytes << 20))
    for _ in range(children):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(0.5)  # the guard looks ten times a second
    return f"{len(kept)} bytes"
"""


class Uncounted(ProcessBackend):
    """The level on a machine without cgroups."""

    @property
    def cgroups(self) -> CgroupFinding:
        """None."""
        return CgroupFinding(cgroups=None, reason="not here")


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uncounted]:
    if reason := why_not(ProcessBackend):
        pytest.skip(f"the level process is not available: {reason}")
    folder: Path = tmp_path_factory.mktemp("nodes")
    (folder / "large_nodes.py").write_text(PACKAGE)
    built = Uncounted(level="process", size=2, packages=["large_nodes"], paths=[folder])
    yield built
    built.stop()


@pytest.fixture
def driver(backend: Uncounted) -> Iterator[Driver]:
    runtime = backend.start(a_placement(), identity=RunIdentity(tenant="acme"), limits=LIMITS)
    try:
        runtime.open()
        yield Driver(runtime)
    finally:
        runtime.close(5)


@pytest.mark.parametrize(("megabytes", "children"), [(20, 0), (20, 1), (20, 12)])
def test_large_packages_leave_a_run_its_whole_limit(
    driver: Driver, megabytes: int, children: int
) -> None:
    parameters = {"megabytes": megabytes, "children": children}
    assert driver.output("large.use", parameters) == f"{megabytes << 20} bytes"


def test_its_own_memory_is_charged_beside_large_packages(driver: Driver) -> None:
    result = driver.run("large.use", {"megabytes": 90, "children": 0})
    assert (result.status, result.code) == ("failed", Code.RAM_EXCEEDED), result
