"""One backend per level for all tests here; those that end or starve one build their own."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from isolane.limits import RunLimits
from isolane.protocol import Grant
from resources.runtimes.base import OnResource, RunIdentity, Runtime, RuntimeBackend, ignore
from tests.integration.resources.runtimes.conftest import PACKAGES, Driver, number_of, why_not
from tests.integration.resources.runtimes.contract.levels import LEVELS
from tests.placements import a_placement
from tests.requirements import give_up

TASKS = ["tests.nodes.tasks"]
NODES = (*PACKAGES, "tests.integration.resources.runtimes.contract.nodes")
UNLIMITED = RunLimits()
Start = Callable[..., Runtime]
Build = Callable[..., RuntimeBackend]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect that a clause which a level is exempted from does not hold there."""
    for item in items:
        marker = item.get_closest_marker("clause")
        level = getattr(item, "callspec", None) and item.callspec.params.get("level")  # type: ignore[attr-defined]
        if marker is None or level is None:
            continue
        (clause,) = marker.args
        if clause in LEVELS[level].exempt:
            reason = f"the level {level} does not promise: {clause}"
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    """Each level in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="package")
def backends() -> Iterator[dict[str, RuntimeBackend]]:
    """The backends by level; each is built when it is first needed."""
    built: dict[str, RuntimeBackend] = {}
    yield built
    for backend in built.values():
        backend.stop()


@pytest.fixture
def backend(level: str, backends: dict[str, RuntimeBackend]) -> RuntimeBackend:
    """The backend of this level, which other tests use as well; a level that the machine cannot give is skipped."""
    if reason := why_not(LEVELS[level].build):
        give_up(f"the level {level} is not available: {reason}")
    if level not in backends:
        backends[level] = LEVELS[level].build(level=level, size=4, packages=NODES, tasks=TASKS)
    return backends[level]


@pytest.fixture
def build(level: str, backend: RuntimeBackend) -> Iterator[Build]:
    """Build backends of this level that are stopped at the end of the test; they share the zygote, if there is one."""
    with ExitStack() as stack:

        def build_one(size: int = 2, **options: Any) -> RuntimeBackend:
            given = {"packages": NODES, "tasks": TASKS} | options
            own = LEVELS[level].build(level=level, size=size, **given)
            stack.callback(own.stop)
            return own

        yield build_one


@pytest.fixture
def start(backend: RuntimeBackend) -> Iterator[Start]:
    """Start and open runtimes that are closed at the end of the test."""
    with ExitStack() as stack:

        def start_one(
            tenant_id: str = "acme",
            execution_id: str = "e1",
            epoch: int = 1,
            *,
            on: RuntimeBackend = backend,
            limits: RunLimits = UNLIMITED,
            grants: tuple[Grant, ...] = (),
            on_resource: OnResource = ignore,
        ) -> Runtime:
            runtime = on.start(
                a_placement(execution_id, tenant_id=number_of(tenant_id), epoch=epoch),
                identity=RunIdentity(tenant=tenant_id, user_id="ada", request_id="r1"),
                limits=limits,
                grants=grants,
                on_resource=on_resource,
            )
            stack.callback(runtime.close, 5)
            runtime.open()
            return runtime

        yield start_one


@pytest.fixture
def driver(start: Start) -> Driver:
    """An open runtime ready for steps."""
    return Driver(start())


@pytest.fixture
def times() -> tuple[str, str]:
    """Two times to sleep that no other process sleeps: by them its processes are known, in whatever namespace."""
    return f"3600.{secrets.randbits(40):013}1", f"3600.{secrets.randbits(40):013}2"
