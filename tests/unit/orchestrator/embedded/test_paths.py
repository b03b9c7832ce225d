"""The directories of the embedded stack, and those that are refused."""

import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.embedded import paths
from orchestrator.embedded.account import server_account
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.paths import MAX_SOCKET_PATH, EmbeddedPaths
from orchestrator.embedded.private_files import make_private_directory

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="what root does")
only_user = pytest.mark.skipif(os.geteuid() == 0, reason="what an ordinary user does")


@pytest.fixture
def places(tmp_path: Path) -> Iterator[EmbeddedPaths]:
    places = EmbeddedPaths(tmp_path / "h")
    yield places
    places.remove()


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[EmbeddedPaths]:
    places = EmbeddedPaths(tmp_path / ("d" * 100) / "home")
    yield places
    places.remove()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_made_is_closed_to_others(places: EmbeddedPaths) -> None:
    places.prepare()
    places.prepare()

    for directory in (places.home, places.logs, places.valkey, places.run_cache, places.sockets):
        assert mode(directory) == 0o700
    assert mode(places.postgres_sockets) == 0o700


@only_user
def test_an_ordinary_user_has_everything_below_home(places: EmbeddedPaths) -> None:
    places.prepare()

    assert places.postgres_data.is_relative_to(places.home.resolve())
    assert places.postgres_sockets == places.sockets


@only_root
def test_root_has_postgres_elsewhere_and_finds_it_again(places: EmbeddedPaths) -> None:
    places.prepare()
    elsewhere = places.postgres
    places.prepare()

    assert places.postgres == elsewhere
    assert elsewhere.parent == places.system_root
    assert mode(elsewhere) == 0o755
    assert places.postgres_sockets.owner() == "nobody"


@only_root
def test_root_begins_anew_when_the_data_was_removed(places: EmbeddedPaths) -> None:
    places.prepare()
    shutil.rmtree(places.postgres)
    places.prepare()

    assert places.postgres_sockets.is_dir()


def test_remove_leaves_nothing(tmp_path: Path) -> None:
    places = EmbeddedPaths(tmp_path / ("d" * 100) / "home")
    places.prepare()
    outside = (places.postgres, places.postgres_sockets, places.sockets)
    places.remove()
    places.remove()

    assert not places.home.exists()
    assert not any(place.exists() for place in outside)


def test_clear_leaves_only_the_lock(places: EmbeddedPaths) -> None:
    places.prepare()
    places.lock_file.touch()
    places.state_file.touch()
    postgres = places.postgres
    places.clear()

    assert list(places.home.iterdir()) == [places.lock_file]
    assert not postgres.exists()


def test_clear_does_not_follow_a_link_that_is_not_ours(tmp_path: Path) -> None:
    places = EmbeddedPaths(tmp_path / "h")
    places.prepare_home()
    precious = tmp_path / "precious"
    precious.mkdir()
    (places.home / "postgres").symlink_to(precious)
    places.remove()

    assert precious.exists()


def test_sockets_whose_path_is_too_long_lie_in_a_short_directory(deep: EmbeddedPaths) -> None:
    deep.prepare()

    assert not deep.sockets.is_relative_to(deep.home)
    assert len(os.fsencode(deep.postgres_sockets / ".s.PGSQL.5432")) <= MAX_SOCKET_PATH
    assert mode(deep.sockets) == 0o700


def test_the_limit_counts_bytes() -> None:
    fitting = EmbeddedPaths(Path("/" + "x" * 88))
    umlauts = EmbeddedPaths(Path("/" + "ä" * 88))

    assert fitting.sockets == fitting.home / "run"
    assert EmbeddedPaths(Path("/" + "x" * 89)).sockets != Path("/" + "x" * 89) / "run"
    assert umlauts.sockets != umlauts.home / "run"


def test_a_short_directory_that_is_a_link_is_refused(
    deep: EmbeddedPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_root = tmp_path / "t"
    short_root.mkdir()
    monkeypatch.setattr(paths, "SHORT_ROOT", short_root)
    deep.sockets.symlink_to(tmp_path)

    with pytest.raises(EmbeddedError, match="must be a directory"):
        deep.prepare()
    deep.sockets.unlink()


@only_root
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, 12345, 12345)

    with pytest.raises(EmbeddedError, match="belongs to uid 12345"):
        make_private_directory(foreign)


def test_a_directory_open_to_others_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    opened.mkdir()
    opened.chmod(0o755)

    with pytest.raises(EmbeddedError, match="open to other users"):
        make_private_directory(opened)
    assert mode(opened) == 0o755


def test_an_ordinary_user_needs_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert server_account() is None


def test_root_without_a_nobody_gets_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry(_key: object) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", no_entry)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)

    with pytest.raises(EmbeddedError, match="no user 'nobody'"):
        server_account()
