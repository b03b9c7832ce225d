"""Links in the files that a sandbox shows, and odd modules in the zygote that it is forked from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.runtimes.base import RuntimeBackend
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import Driver, why_not
from tests.placements import ACME, a_placement

SECRET = "the platform's secret"
# Its import leaves an import path that is a link, and entries of sys.modules that are no modules.
PACKAGE = """
import sys
from pathlib import Path
from isolane import NodeContext, node

sys.path.append({link!r})
sys.modules["odd_nodes.none"] = None
sys.modules["odd_nodes_object"] = object()

@node("odd.read")
def read(ctx: NodeContext, *, path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        return type(error).__name__

@node("odd.import")
def load(ctx: NodeContext) -> str:
    from linked import late
    return late.WORD
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the nodes, a link that leads to the platform's folder, and a package in a repository."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("nodes", "real/.isolane", "repository/linked"):
        (folder / name).mkdir(parents=True)
    (folder / "link").symlink_to("real")
    (folder / "real" / ".isolane" / "secret").write_text(SECRET)
    (folder / "real" / "known").write_text("known")
    (folder / "nodes" / "linked").symlink_to(folder / "repository" / "linked")
    (folder / "repository" / "linked" / "__init__.py").touch()
    (folder / "repository" / "linked" / "late.py").write_text("WORD = 'late'")
    text = "import linked\n" + PACKAGE.format(link=str(folder / "link"))
    (folder / "nodes" / "odd_nodes.py").write_text(text)
    return folder


@pytest.fixture(scope="module", params=[SharedBackend, ProcessBackend])
def backend(request: pytest.FixtureRequest, home: Path) -> Iterator[RuntimeBackend]:
    if reason := why_not(request.param):
        pytest.skip(f"the level is not available: {reason}")
    built = request.param(
        level="tried",
        size=1,
        packages=["odd_nodes"],
        paths=[home / "nodes"],
        hidden=[home / "real" / ".isolane"],
    )
    yield built
    built.stop()


@pytest.fixture
def driver(backend: RuntimeBackend) -> Iterator[Driver]:
    runtime = backend.start(a_placement(), identity=ACME)
    try:
        runtime.open()
        yield Driver(runtime)
    finally:
        runtime.close(5)


def test_odd_modules_stop_no_level(driver: Driver, home: Path) -> None:
    assert driver.output("odd.read", {"path": str(home / "link" / "known")}) == "known"


def test_what_is_hidden_is_hidden_behind_a_link(
    backend: RuntimeBackend, driver: Driver, home: Path
) -> None:
    for name in ("link", "real"):
        read = driver.output("odd.read", {"path": str(home / name / ".isolane" / "secret")})
        assert (read == SECRET) is isinstance(backend, SharedBackend), read


def test_a_package_behind_a_link_can_be_imported(driver: Driver) -> None:
    assert driver.output("odd.import") == "late"


def test_where_no_view_can_be_made_shared_goes_on(tmp_path: Path) -> None:
    if reason := why_not(ProcessBackend):
        pytest.skip(f"the level is not available: {reason}")
    text = "import isolane.sandbox.view as view\nview._SYSTEM = (None,)\n" + PACKAGE.format(link="")
    (tmp_path / "blind_nodes.py").write_text(text)
    for kind, reason in ((SharedBackend, ""), (ProcessBackend, "the files for sandboxes were not")):
        backend = kind(level="tried", size=1, packages=["blind_nodes"], paths=[tmp_path])
        try:
            found = backend.availability()
            assert found.ok is (kind is SharedBackend)
            assert reason in found.reason
            assert "Success" not in found.reason
        finally:
            backend.stop()
