"""The examples: their blueprints fit their nodes, and the nodes run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import isolane
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import Driver
from tests.placements import ACME, a_placement

OWN = ("shop.", "hello.")  # brought by the packages of the examples
EXAMPLES = Path(isolane.__file__).parent.parent / "examples"


@pytest.fixture
def examples() -> Iterator[SharedBackend]:
    """A pool with the nodes of the examples."""
    backend = SharedBackend(
        level="shared", size=1, packages=["demo_shop", "hello"], paths=[EXAMPLES]
    )
    yield backend
    backend.stop()


@pytest.fixture
def driver(examples: SharedBackend) -> Iterator[Driver]:
    """An open runtime with the nodes of the examples."""
    runtime = examples.start(a_placement(), identity=ACME)
    runtime.open()
    yield Driver(runtime)
    runtime.close(5)


def test_the_blueprints_fit_the_nodes(examples: SharedBackend) -> None:
    nodes = {node.name: node.parameters for node in examples.describe().nodes}
    steps: list[dict[str, Any]] = []
    for path in sorted(EXAMPLES.glob("*.yaml")):
        steps += yaml.safe_load(path.read_text())["steps"]
    own = {name for name in nodes if name.startswith(OWN)}
    assert own <= {step["uses"] for step in steps} <= set(nodes)
    for step in steps:
        schema = nodes[step["uses"]]
        assert set(schema["required"]) <= set(step["with"]) <= set(schema["properties"]), step[
            "key"
        ]


def test_an_order_is_shipped(driver: Driver) -> None:
    order = driver.output("shop.fetch_order", {"order_id": 5})
    assert order == driver.output("shop.fetch_order", {"order_id": 5})
    total = driver.output("shop.price", {"items": order["items"]})["total"]
    charge = driver.output("shop.charge", {"customer": order["customer"], "total": total})
    assert charge == {"charge_id": "charge-key", "charged": total}
    shipped = driver.output("shop.ship", {"order_id": 5, "charge_id": charge["charge_id"]})
    assert shipped["tracking"].startswith("TRACK-")
    assert len(driver.frames) > 10


def test_hello_greets(driver: Driver) -> None:
    assert driver.output("hello.greet", {"name": "Ada"}) == {"greeting": "Hello, Ada!"}
