"""resources.runtimes.interpreter: when the program of a zygote is a copy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.runtimes import interpreter
from resources.runtimes.interpreter import Program, zygote_program


@pytest.fixture(autouse=True)
def found_anew() -> Iterator[None]:
    """Find it for each test, and let no other one use what was found."""
    zygote_program.cache_clear()
    yield
    for descriptor in zygote_program().descriptors:
        os.close(descriptor)
    zygote_program.cache_clear()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is this process's own, and does not run."""
    path = tmp_path / "python"
    path.write_bytes(b"no program")
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(interpreter, "_is_own", lambda: True)
    return path


@pytest.mark.parametrize("own", [False, True])
def test_what_others_own_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    path = tmp_path / "python"
    path.touch()
    user = path.stat().st_uid + (0 if own else 1)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert zygote_program() == Program(str(path), is_safe=not own or user == 0)


def test_what_is_the_workers_own_is_copied_and_sealed(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "_runs", lambda found: True)
    found = zygote_program()
    (copy,) = found.descriptors
    assert found == Program(f"/proc/self/fd/{copy}", (copy,))
    assert os.pread(copy, 100, 0) == program.read_bytes()
    with pytest.raises(PermissionError):
        os.pwrite(copy, b"x", 0)


def test_a_copy_that_does_not_run_is_not_used_and_said_to_be_unsafe(program: Path) -> None:
    assert zygote_program() == Program(str(program), is_safe=False)


def test_nor_is_one_that_hangs(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **given: float) -> None:
        raise subprocess.TimeoutExpired("python", given["timeout"])

    monkeypatch.setattr(subprocess, "run", hang)
    assert zygote_program() == Program(str(program), is_safe=False)
