"""isolane.sandbox.view: the paths that a sandbox shows."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

import isolane
from isolane.sandbox.view import is_within, outermost, view_of

PACKAGE = str(Path(isolane.__file__).resolve().parent)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["/usr/lib", "/usr"], ("/usr",)),
        (["/usr", "/usr-local", "/usr/"], ("/usr", "/usr-local")),
        (["/a/b", "/a/b/../c", "/a/c/d"], ("/a/b", "/a/c")),
        (["/a-b", "/a", "/a/b"], ("/a", "/a-b")),
        ([], ()),
    ],
)
def test_paths_inside_others_are_left_out(paths: list[str], found: tuple[str, ...]) -> None:
    assert outermost(paths) == found


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)],
)
def test_a_folder_holds_itself_and_what_is_below(path: str, is_inside: bool) -> None:
    assert is_within(path, ["/a"]) == is_inside


def test_the_interpreter_and_our_package_are_shown_and_our_source_is_not() -> None:
    view = view_of(sys.path, [])
    assert is_within(PACKAGE, view.binds)
    assert is_within(sys.base_prefix, view.binds)
    root = str(Path(PACKAGE).parent)
    if Path(root).name not in ("site-packages", "dist-packages"):
        assert not is_within(f"{root}/manage.py", view.binds)
    assert "/" not in view.binds
    assert not is_within("/etc/shadow", view.binds)
    assert not is_within("/proc", view.binds)


def test_import_paths_and_imported_modules_are_shown(tmp_path: Path) -> None:
    for name in ("path", "package", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "single.py").touch()
    package, single, inner = ModuleType("package"), ModuleType("single"), ModuleType("other.inner")
    package.__path__ = [str(tmp_path / "package")]
    single.__file__ = str(tmp_path / "other" / "single.py")
    inner.__path__ = [str(tmp_path / "other")]  # inside of another package, which is shown itself
    paths = [str(tmp_path / "path"), str(tmp_path / "nowhere")]
    binds = view_of(paths, [package, single, inner]).binds
    shown = sorted(
        path.removeprefix(f"{tmp_path}/") for path in binds if is_within(path, [str(tmp_path)])
    )
    assert shown == ["other/single.py", "package", "path"]


def test_what_is_hidden_is_covered_where_it_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "path" / "secrets").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    hidden = [str(tmp_path / name) for name in ("path/secrets", "path/missing", "elsewhere")]
    view = view_of([str(tmp_path / "path")], [], hidden=hidden)
    assert view.hidden == tuple(hidden[:2])  # one that does not exist may come


def test_folders_of_the_root_come_before_what_is_inside(tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    view = view_of([str(tmp_path / "path")], [])
    assert {"/proc", "/tmp", "/dev", "/etc", str(tmp_path), str(tmp_path / "path")} <= set(
        view.folders
    )
    assert "/" not in view.folders
    for place, folder in enumerate(view.folders):
        assert str(Path(folder).parent) in ("/", *view.folders[:place])
    assert not set(view.folders) & set(view.links)


def test_all_that_is_shown_may_be_read_and_nothing_is_named_twice() -> None:
    view = view_of(sys.path, [])
    assert all(is_within(path, view.readable) for path in (*view.binds, "/proc", "/dev", "/etc"))
    assert outermost(view.readable) == view.readable
    assert not is_within("/root/.ssh", view.readable)
    for link, target in view.links.items():
        inside = str(Path(link).parent / target)
        assert is_within(link, view.readable) or is_within(inside, view.readable)
