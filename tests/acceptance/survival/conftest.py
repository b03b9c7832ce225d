"""A judge, and workers with the nodes whose effects it sees."""

from pathlib import Path

import pytest

from tests.acceptance.survival.judge import Judge


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge(tmp_path)


@pytest.fixture(autouse=True)
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.acceptance.survival.nodes")
