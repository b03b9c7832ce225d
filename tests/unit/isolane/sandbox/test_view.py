"""isolane.sandbox.view: the paths that a sandbox shows."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import isolane
from isolane.sandbox.paths import is_within, outermost
from isolane.sandbox.view import View, view_of

PACKAGE = str(Path(isolane.__file__).resolve().parent)


def within(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return those inside this folder, relative to it."""
    return sorted(
        path.removeprefix(f"{folder}/") for path in paths if is_within(path, [str(folder)])
    )


def test_the_interpreter_and_our_package_are_shown_and_our_source_is_not() -> None:
    view = view_of(sys.path, {})
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
    modules = {each.__name__: each for each in (package, single, inner)}
    binds = view_of(paths, modules).binds
    assert within(tmp_path, binds) == ["other/single.py", "package", "path"]


def test_what_is_hidden_is_covered_where_it_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "path" / "secrets").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    hidden = [str(tmp_path / name) for name in ("path/secrets", "path/missing", "elsewhere")]
    view = view_of([str(tmp_path / "path")], {}, hidden=hidden)
    assert view.hidden == tuple(hidden[:2])  # one that does not exist may come


def test_folders_of_the_root_come_before_what_is_inside(tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    view = view_of([str(tmp_path / "path")], {})
    assert {"/proc", "/tmp", "/dev", "/etc", str(tmp_path), str(tmp_path / "path")} <= set(
        view.folders
    )
    assert "/" not in view.folders
    for place, folder in enumerate(view.folders):
        assert str(Path(folder).parent) in ("/", *view.folders[:place])
    assert not set(view.folders) & set(view.links)


def test_all_that_is_shown_may_be_read_and_nothing_is_named_twice() -> None:
    view = view_of(sys.path, {})
    assert all(is_within(path, view.readable) for path in (*view.binds, "/proc", "/dev", "/etc"))
    assert outermost(view.readable) == view.readable
    assert not is_within("/root/.ssh", view.readable)
    for link, target in view.links.items():
        inside = str(Path(link).parent / target)
        assert is_within(link, view.readable) or is_within(inside, view.readable)


class Computed:
    """The folders of a package whose parent is gone."""

    def __iter__(self) -> Iterator[str]:
        raise KeyError("parent")


class Lazy(ModuleType):
    """A module that is imported when it is first used."""

    def __getattribute__(self, name: str) -> object:
        raise ImportError(name)


def test_odd_modules_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    package, unnamed, computed = (
        ModuleType("package"),
        ModuleType("unnamed"),
        ModuleType("computed"),
    )
    package.__path__ = [str(tmp_path / "package"), tmp_path]  # type: ignore[list-item]
    del unnamed.__name__
    computed.__path__ = Computed()  # type: ignore[assignment]
    modules = {
        "none": None,
        "object": object(),
        "renamed.package": package,
        "package": package,
        "unnamed": unnamed,
        "computed": computed,
        "lazy": Lazy("lazy"),
    }
    view = view_of([str(tmp_path / "nowhere"), tmp_path], modules)  # type: ignore[list-item]
    assert view.failure == ""
    assert within(tmp_path, view.binds) == ["package"]


def test_a_view_that_cannot_be_made_says_why() -> None:
    assert view_of(["/usr/\0"], {}) == View(
        failure="the files for sandboxes were not found: ValueError('embedded null byte')"
    )


def test_our_source_is_not_shown_behind_a_link(tmp_path: Path) -> None:
    root = Path(PACKAGE).parent
    if root.name in ("site-packages", "dist-packages"):
        pytest.skip("our package is installed")
    (tmp_path / "link").symlink_to(root)
    assert within(tmp_path, view_of([str(tmp_path / "link")], {}).binds) == []


def test_what_is_hidden_is_covered_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / ".isolane").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    hidden = [str(tmp_path / "real" / ".isolane")]
    view = view_of([str(tmp_path / "link"), str(tmp_path / "real")], {}, hidden=hidden)
    assert within(tmp_path, view.binds) == ["link", "real"]
    assert within(tmp_path, view.hidden) == ["link/.isolane", "real/.isolane"]


def test_the_target_of_a_linked_package_is_shown(tmp_path: Path) -> None:
    (tmp_path / "repository" / "package" / "inner").mkdir(parents=True)
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "current").symlink_to("repository")
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "package").symlink_to(tmp_path / "current" / "package")
    (tmp_path / "repository" / "package" / "inner" / "deep").symlink_to("../../../other/deep")
    package, deep = ModuleType("package"), ModuleType("package.inner.deep")
    package.__path__ = [str(tmp_path / "nodes" / "package")]
    deep.__path__ = [str(tmp_path / "nodes" / "package" / "inner" / "deep")]
    modules = {"package": package, "package.inner.deep": deep}
    view = view_of([str(tmp_path / "nodes")], modules)
    assert within(tmp_path, view.binds) == ["current/package", "nodes", "other/deep"]


def test_the_target_of_an_import_path_inside_another_one_is_shown(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "nodes" / "more").symlink_to(tmp_path / "elsewhere")
    paths = [str(tmp_path / "nodes"), str(tmp_path / "nodes" / "more")]
    assert within(tmp_path, view_of(paths, {}).binds) == ["elsewhere", "nodes"]


def test_a_link_to_what_is_hidden_or_to_everything_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "secrets" / "package").mkdir(parents=True)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "package").symlink_to(tmp_path / "secrets" / "package")
    (tmp_path / "nodes" / "all").symlink_to("/")
    (tmp_path / "nodes" / "round").symlink_to("round")
    modules = {}
    for name in ("package", "all", "round"):
        modules[name] = ModuleType(name)
        modules[name].__path__ = [str(tmp_path / "nodes" / name)]
    view = view_of([str(tmp_path / "nodes")], modules, hidden=[str(tmp_path / "secrets")])
    assert within(tmp_path, view.binds) == ["nodes"]
    assert "/" not in view.binds


def test_paths_behind_a_link_of_the_system_are_shown_by_it() -> None:
    links = view_of([], {}).links
    if "/lib" not in links:
        pytest.skip("/lib is no link here")
    view = view_of(["/lib/python3"], {})
    assert not set(view.folders) & set(view.links)
    assert not is_within("/lib", view.binds)
