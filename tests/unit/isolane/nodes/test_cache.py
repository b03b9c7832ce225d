"""isolane.nodes.cache: values of steps in the run's cache."""

from typing import Any

import pytest

from isolane.node import default_registry
from isolane.results import StepError
from isolane.testing import run_node


class FakeCache:
    """The handle of a cache, without a server."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.ttls: dict[str, float | None] = {}

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def set(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        self.values[key], self.ttls[key] = value, ttl_s

    def delete(self, key: str) -> bool:
        return self.values.pop(key, None) is not None


def run(name: str, cache: FakeCache, **parameters: Any) -> Any:
    return run_node(name, resources={"cache": cache}, resource="cache", **parameters).output


def test_a_value_is_kept_found_and_deleted() -> None:
    cache = FakeCache()
    assert run("cache.set", cache, key="a", value={"b": [1]}) == {"key": "a"}
    assert run("cache.get", cache, key="a") == {"found": True, "value": {"b": [1]}}
    assert run("cache.delete", cache, key="a") == {"deleted": True}
    assert run("cache.delete", cache, key="a") == {"deleted": False}
    assert run("cache.get", cache, key="a", default=7) == {"found": False, "value": 7}


def test_a_value_lives_as_long_as_the_step_says() -> None:
    cache = FakeCache()
    run("cache.set", cache, key="a", value=0, ttl_s=2.5)
    run("cache.set", cache, key="b", value=False)
    assert cache.ttls == {"a": 2.5, "b": None}
    assert run("cache.get", cache, key="b", default=7) == {"found": True, "value": False}


@pytest.mark.parametrize("name", ["cache.get", "cache.set", "cache.delete"])
def test_the_nodes_say_what_they_are(name: str) -> None:
    node = default_registry.get(name)
    assert node is not None
    assert node.idempotent
    properties = node.description().parameters["properties"]
    assert properties["resource"] == {"type": "string", "resource": "cache"}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"key": "", "value": 1}, "parameter key: 0 characters"),
        ({"key": "ü" * 257, "value": 1}, "parameter key: 257 characters, at most 256"),
        ({"key": "a", "value": 1, "ttl_s": 0}, "parameter ttl_s: 0.0 is not above 0"),
    ],
)
def test_what_no_cache_holds_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(StepError, match=f"cache.set.*{reason}"):
        run("cache.set", FakeCache(), **parameters)
