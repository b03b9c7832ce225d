"""resources.runtimes.sweeping: what stays is told once, tried again later and later, and stops no other."""

import tempfile
import time
from pathlib import Path

import pytest

from resources.runtimes import sweeping
from resources.runtimes.emptying import UNFINISHED
from resources.runtimes.folder import PREFIX, remove_held
from resources.runtimes.sweeping import FolderSweep


class Machine:
    """A temporary directory in which some folders cannot be removed, and a clock."""

    def __init__(self, temporary: Path, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.stuck: dict[str, str | Exception] = {}
        self.tried: list[str] = []
        self._temporary = temporary
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(sweeping, "remove_held", self._remove)

    def make(self, *names: str) -> None:
        for name in names:
            (self._temporary / f"{PREFIX}{name}").mkdir()

    def left(self) -> set[str]:
        return {path.name.removeprefix(PREFIX) for path in self._temporary.iterdir()}

    def _remove(self, path: Path, lock: int, seconds: float) -> str:
        name = path.name.removeprefix(PREFIX)
        self.tried.append(name)
        stuck = self.stuck.get(name, "")
        if isinstance(stuck, Exception):
            raise stuck
        return stuck or remove_held(path, lock, seconds)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_cannot_be_removed_stops_no_other_and_is_said(machine: Machine) -> None:
    machine.make("a", "b", "c", "d")
    machine.stuck = {
        "a": "'x': Device or resource busy",
        "b": RecursionError("too deep"),
        "c": PermissionError(13, "Permission denied"),
    }
    left = FolderSweep().turn()
    assert {(kept.path.name.removeprefix(PREFIX), kept.reason) for kept in left} == {
        ("a", "'x': Device or resource busy"),
        ("b", "RecursionError"),
        ("c", "Permission denied"),
    }
    assert machine.left() == {"a", "b", "c"}


def test_it_is_told_once_and_tried_later_and_later(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.make("a")
    machine.stuck = {"a": "'x': Device or resource busy"}
    sweep, tries = FolderSweep(), []
    for _ in range(60):
        sweep.turn()
        tries.append(len(machine.tried))
        machine.now += 20
    # After 20, 60, 140, 300, 620 s.
    assert tries[-1] == 6
    assert [line.__dict__["event"] for line in caplog.records] == ["FOLDER_STAYS"]
    machine.stuck, machine.now = {}, machine.now + 3600
    assert sweep.turn() == []
    assert machine.left() == set()


def test_what_only_takes_long_goes_on_with_the_next_sweep_after_the_others(
    machine: Machine,
) -> None:
    machine.make("long")
    machine.stuck = {"long": UNFINISHED}
    sweep = FolderSweep()
    sweep.turn()
    machine.make("new")
    machine.now += 1
    sweep.turn()
    assert machine.tried == ["long", "new", "long"]


def test_one_whose_time_is_over_leaves_the_rest_for_the_next_sweep(machine: Machine) -> None:
    machine.make("a", "b")
    assert FolderSweep().turn(0.0) == []
    assert machine.left() == {"a", "b"}


def test_a_directory_that_cannot_be_read_is_no_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert FolderSweep().turn() == []
