"""trials.cgroup_v2.mirror: the mirror is the one of apt."""

from pathlib import Path

import pytest

from trials.cgroup_v2.mirror import NoMirrorError, mirror_of

PARAGRAPHS = """Types: deb
URIs: http://other.test/debian
Suites: trixie
Components: main

Types: deb
# a comment: with a colon
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
"""
LINES = """# deb http://no.test/debian bookworm main
deb-src http://source.test/debian bookworm main
deb [arch=amd64 signed-by=/a.gpg] http://mirror.test/debian bookworm main
"""


@pytest.mark.parametrize(("name", "text"), [("debian.sources", PARAGRAPHS), ("x.list", LINES)])
def test_the_first_source_with_the_release_is_taken(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / name).write_text(text)
    assert mirror_of("bookworm", tmp_path) == "http://mirror.test/debian"


def test_without_a_source_the_way_out_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMirrorError, match="--mirror"):
        mirror_of("bookworm", tmp_path)
