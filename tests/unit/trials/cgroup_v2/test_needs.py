"""trials.cgroup_v2.needs: each thing that is missing is named with the way to get it."""

import os
import shutil
import sys

import pytest

from trials.cgroup_v2 import needs


@pytest.fixture(autouse=True)
def _complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda command: f"/usr/bin/{command}")
    monkeypatch.setattr(sys, "version_info", (3, 11, 2))


def test_a_complete_machine_lacks_nothing() -> None:
    assert needs.missing() == []


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda command: None)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    as_root, packages, python = needs.missing()
    assert "as root" in as_root
    assert packages.endswith("apt-get install debootstrap qemu-system-x86 e2fsprogs git")
    assert "Python 3.11" in python
