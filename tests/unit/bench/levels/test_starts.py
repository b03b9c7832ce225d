"""The record of starts."""

from pathlib import Path

import pytest

from bench.levels.starts import STARTS, Start, Starts, write_start


def test_only_starts_since_then_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STARTS, str(tmp_path))
    write_start(Start(1.0, 0.5))
    starts = Starts(tmp_path)
    write_start(Start(2.0, 0.25))
    (tmp_path / "another.starts").write_text("3.0 0.0\n")
    assert sorted(starts.found()) == [Start(2.0, 0.25), Start(3.0, 0.0)]
    assert Starts(tmp_path).found() == []
