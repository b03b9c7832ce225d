"""isolane.sandbox.paths: what is inside what."""

import pytest

from isolane.sandbox.paths import is_within, outermost


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
