"""examples/*.yaml: what people begin with is not refused."""

from dataclasses import asdict
from pathlib import Path

import pytest

import isolane.nodes
from executions.blueprints.reading import read
from executions.blueprints.validation.nodes import NodeInfo, nodes_of
from executions.blueprints.validation.rules import check_document
from isolane.node import default_registry

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.yaml"))
OWN_NODES = {"hello.yaml", "order.yaml"}  # these bring a package of nodes


def known(example: Path) -> dict[str, NodeInfo]:
    assert isolane.nodes.__all__  # imported: the built-in nodes are registered
    return (
        {}
        if example.name in OWN_NODES
        else nodes_of(asdict(n.description()) for n in default_registry)
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_can_be_published(example: Path) -> None:
    source = read(example.read_text(encoding="utf-8"))
    check_document(source.document, known(example))
    assert source.document["name"] == example.stem
