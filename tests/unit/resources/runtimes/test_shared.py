"""resources.runtimes.shared: what it says where it cannot work."""

import os

import pytest

from resources.runtimes.shared import SharedBackend


def test_it_is_unavailable_where_processes_cannot_be_watched_safely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = SharedBackend(level="shared", size=1)  # starts nothing yet
    monkeypatch.delattr(os, "pidfd_open")
    assert not backend.availability().ok
    assert backend.availability().reason == "this Python has no os.pidfd_open: use Linux"
    backend.stop()
