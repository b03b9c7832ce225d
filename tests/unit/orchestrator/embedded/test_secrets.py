"""Generated secrets: private, stable, complete."""

import json
import stat
from dataclasses import asdict
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.secrets import load_secrets


def test_they_are_stable_between_starts(tmp_path: Path) -> None:
    first = load_secrets(tmp_path / "secrets.json")

    assert load_secrets(tmp_path / "secrets.json") == first
    assert len(set(asdict(first).values())) == len(asdict(first))


def test_the_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    load_secrets(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_encryption_key_is_a_fernet_key(tmp_path: Path) -> None:
    key = load_secrets(tmp_path / "secrets.json").encryption_key

    assert Fernet(key).decrypt(Fernet(key).encrypt(b"x")) == b"x"


def test_a_secret_that_an_older_file_lacks_is_added_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"valkey_password": "kept", "no_longer_known": "x"}))

    loaded = load_secrets(path)

    assert loaded.valkey_password == "kept"
    assert load_secrets(path) == loaded
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"'])
def test_a_damaged_file_is_reported_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(content)

    with pytest.raises(EmbeddedError, match="damaged"):
        load_secrets(path)
    assert path.read_text() == content


def test_the_representation_shows_none(tmp_path: Path) -> None:
    loaded = load_secrets(tmp_path / "secrets.json")

    assert not any(value in repr(loaded) for value in asdict(loaded).values())
