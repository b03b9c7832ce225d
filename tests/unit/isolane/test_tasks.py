"""isolane.tasks: plain functions and Celery tasks as nodes."""

from types import ModuleType
from typing import Any

import pytest
from celery import Celery

from isolane.node import Node, NodeRegistry, default_registry
from isolane.tasks import register_tasks
from tests.nodes import tasks

PREFIX = "task:tests.nodes.tasks."


@pytest.fixture
def registry() -> NodeRegistry:
    """A registry with the plain functions and the one node beside them."""
    found = NodeRegistry()
    node = default_registry.of(tasks.among_tasks)
    assert node is not None
    found.add(node)
    register_tasks(tasks, found)
    return found


def a_node(registry: NodeRegistry, name: str) -> Node:
    node = registry.get(PREFIX + name)
    assert node is not None
    return node


def test_public_functions_that_the_module_defines_are_nodes(registry: NodeRegistry) -> None:
    names = {node.name.removeprefix(PREFIX) for node in registry}
    assert names == {"test.among_tasks", "alias", "due", "later", "price"}


def test_a_task_is_described_by_its_signature_and_promises_nothing(registry: NodeRegistry) -> None:
    description = a_node(registry, "price").description()
    assert description.summary == "Price some items."
    assert description.parameters == {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "string"}},
            "each": {"type": "number", "default": 2.5},
            "note": {"default": None},
        },
        "required": ["items"],
        "additionalProperties": False,
    }
    promises = (description.idempotent, description.deterministic, description.uses_key)
    assert promises == (False, False, False)


def test_what_json_has_no_shape_for_is_taken_as_it_comes(registry: NodeRegistry) -> None:
    node = a_node(registry, "due")
    assert node.description().parameters["properties"] == {
        "day": {},
        "since": {},
        "loud": {"default": None},
    }
    assert node.call(None, node.checked({"day": "today"})) == "today 2026-01-01 None"


def test_other_names_for_the_rest_are_no_parameters(registry: NodeRegistry) -> None:
    node = a_node(registry, "later")
    assert node.is_async
    assert list(node.hints) == ["text"]


def test_celery_tasks_are_known_by_what_they_have() -> None:
    app = Celery("shop", set_as_current=False)
    module = ModuleType("shop.work")

    def add(a: int) -> int:
        return a + 1

    def bound(self: Any, a: int) -> int:
        return a

    def foreign(a: int) -> int:
        return a

    add.__module__ = bound.__module__ = "shop.work"
    vars(module).update(
        add=app.task(add),
        retried=app.task(name="r", autoretry_for=(ValueError,))(add),
        bound=app.task(bind=True)(bound),
        bound_too=app.task(name="b", bind=True, autoretry_for=(ValueError,))(bound),
        foreign=app.task(foreign),
        app=app,
    )
    registry = NodeRegistry()
    register_tasks(module, registry)
    assert [node.name for node in registry] == ["task:shop.work.add", "task:shop.work.retried"]
    for node in registry:
        assert node.call(None, node.checked({"a": 1})) == 2


def test_an_object_that_cannot_be_asked_is_none() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("not configured")

    module = ModuleType("shop.lazy")
    vars(module).update(settings=Lazy(), Lazy=Lazy)
    registry = NodeRegistry()
    register_tasks(module, registry)
    assert list(registry) == []
