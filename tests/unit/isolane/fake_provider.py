"""A provider without a remote server, which notes what is asked of it."""

import threading
from collections.abc import Callable
from typing import Any

from isolane.context import ExecutionContext, NodeContext
from isolane.protocol import Frame, Grant, Open, Resource, ResourceScope, Run
from isolane.providers.base import Provider

SECRET = "correct-horse"
LONGER = "correct-horse-battery"


class FakeHandle:
    """The handle that the provider opens."""

    def __init__(self, name: str) -> None:
        self.name = name


class FakeProvider(Provider[FakeHandle]):
    """Does what it is told by name: `creating` and `disposing` are called with the name of the grant."""

    type = "fake"
    config = dict
    dispose_s = 0.2

    def __init__(self) -> None:
        self.created: list[str] = []
        self.tags: set[str] = set()
        self.disposed: list[str] = []
        self.creating: dict[str, Callable[[], object]] = {}
        self.checking: Callable[[], dict[str, Any]] = lambda: {"alive": True}
        self.broken: set[str] = set()
        self.disposing: dict[str, Callable[[], object]] = {}
        self._lock = threading.Lock()

    def find(self, kind: str) -> Provider[Any]:
        """In place of the registry."""
        if kind != self.type:
            raise LookupError(f"resource type {kind!r} is unknown")
        return self

    def create(self, grant: Grant, tag: str) -> FakeHandle:
        self.creating.get(grant.name, lambda: None)()
        with self._lock:
            self.created.append(grant.name)
            self.tags.add(tag)
        return FakeHandle(grant.name)

    def check(self, handle: FakeHandle) -> dict[str, Any]:
        return self.checking()

    def is_broken(self, handle: FakeHandle) -> bool:
        return handle.name in self.broken

    def dispose(self, handle: FakeHandle) -> None:
        with self._lock:
            self.disposed.append(handle.name)
        self.disposing.get(handle.name, lambda: None)()


class Scene:
    """A context with fake resources, and all that it says."""

    def __init__(self, *grants: Grant) -> None:
        self.provider = FakeProvider()
        self.frames: list[Frame] = []
        opened = Open(
            execution_id="e1",
            tenant_id="acme",
            user_id="ada",
            request_id="r1",
            epoch=3,
            resources=grants,
        )
        self.execution = ExecutionContext(opened, self.frames.append, find=self.provider.find)

    def step(self, name: str = "pay") -> NodeContext:
        """One attempt of a step."""
        run = Run(
            step=name, uses="n", parameters={}, variables={}, attempt=1, seed=1, timeout_s=1.0,
            idempotency_key="key",
        )  # fmt: skip
        return NodeContext(self.execution, run, deadline=5.0, emit=self.frames.append)

    def end(self, ctx: NodeContext) -> None:
        """As when the attempt is over."""
        self.execution.handles.end(ctx.attempt_scope)

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """Return its reports on resources: event, name, step."""
        return [(frame.event, frame.name, frame.step) for frame in self.resources]

    @property
    def resources(self) -> list[Resource]:
        return [frame for frame in self.frames if isinstance(frame, Resource)]


def a_grant(
    name: str,
    *,
    definition: str = "",
    scope: ResourceScope = "execution",
    eager: bool = False,
    kind: str = "fake",
) -> Grant:
    """A grant with secrets that must be in no error."""
    return Grant(
        name=name,
        type=kind,
        definition=definition or name,
        scope=scope,
        config={},
        secrets={"password": SECRET, "key": LONGER, "empty": ""},
        eager=eager,
    )


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that raises this."""

    def raise_it(*_: object) -> None:
        raise error

    return raise_it
