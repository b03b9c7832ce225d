"""A judge, and workers with the nodes whose effects it sees.

One tenant is trusted, and its runs have the level `shared`; the other is not, and its runs have `process`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.survival.judge import Judge


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    found = Judge(tmp_path)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _nodes(judge: Judge, both_levels: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.survival.nodes")
    paths = os.pathsep.join([os.environ["ISOLANE_NODE_PATHS"], str(judge.folder)])
    monkeypatch.setenv("ISOLANE_NODE_PATHS", paths)
