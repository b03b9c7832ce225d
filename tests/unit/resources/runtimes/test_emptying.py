"""resources.runtimes.emptying: whatever is in a folder goes, with few descriptors, and nothing else does."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.runtimes.emptying import UNFINISHED, empty, open_folder
from tests.debris import DEBRIS, nest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Hardly more than are in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def emptied(folder: Path, **limits: float) -> str:
    opened = open_folder(folder)
    try:
        return empty(opened, **limits)
    finally:
        os.close(opened)


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("kind", DEBRIS)
def test_whatever_is_in_it_goes(folder: Path, kind: str) -> None:
    DEBRIS[kind](folder)
    assert emptied(folder) == ""
    assert list(folder.iterdir()) == []


def test_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (outside / "sub").mkdir()
    (folder / "d").mkdir()
    (folder / "d" / "link").symlink_to(outside)
    (folder / "link").symlink_to(outside / "sub")
    assert emptied(folder) == ""
    assert (outside / "sub").is_dir()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_try_that_ends_at_its_limit_is_gone_on_with(folder: Path) -> None:
    nest(folder, 60)
    assert emptied(folder, entries=100) == UNFINISHED
    assert emptied(folder, seconds=0) == UNFINISHED
    tries = 2
    while emptied(folder, entries=50):
        tries += 1
    assert 3 <= tries < 10
    assert list(folder.iterdir()) == []


def test_what_cannot_be_removed_is_said_and_the_rest_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (folder / "d" / name).mkdir(parents=True)
    (folder / "d" / "b" / "kept").touch()
    real = os.unlink

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "kept":
            raise PermissionError(1, "no")
        real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    assert emptied(folder) == "'kept': Operation not permitted"
    (left,) = folder.iterdir()
    assert [path.name for path in left.iterdir()] == ["kept"]


def test_a_name_with_control_characters_is_said_without_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a\n\x1b[2Jb").touch()

    def refuse(name: str, *, dir_fd: int) -> None:
        raise OSError(5, "no")

    monkeypatch.setattr(os, "unlink", refuse)
    assert emptied(folder) == r"'a\n\x1b[2Jb': Input/output error"
