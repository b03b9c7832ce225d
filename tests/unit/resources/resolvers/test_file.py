"""resources.resolvers.file: a tenant reads files of its own folder and no others."""

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from resources.resolvers.base import MAX_BYTES, SecretUnavailable
from resources.resolvers.file import FileResolver

RESOLVER = FileResolver()


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Of acme; globex has one beside it."""
    root = tmp_path / "secrets"
    for tenant in ("acme", "globex"):
        (root / tenant).mkdir(parents=True)
        (root / tenant / "key").write_text(f"of-{tenant}\n")
    (root / "top").write_text("of-the-operator")
    settings.SECRETS_DIR = str(root)
    return root / "acme"


def test_each_tenant_has_its_own(folder: Path) -> None:
    assert RESOLVER.resolve("acme", "key") == "of-acme"
    assert RESOLVER.resolve("globex", "key") == "of-globex"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"secret", "secret"),
        (b"secret\r\n", "secret"),
        (b"secret\n\n", "secret\n"),
        (b" secret ", " secret "),
        (b"x" * MAX_BYTES + b"\n", "x" * MAX_BYTES),
    ],
)
def test_the_newline_at_the_end_is_dropped_and_nothing_else(
    folder: Path, content: bytes, value: str
) -> None:
    (folder / "a.b-c_D").write_bytes(content)
    assert RESOLVER.resolve("acme", "a.b-c_D") == value


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../globex/key", "/etc/passwd", "a/b", ".hidden", "..data", "a\0b", "key\n", "-a", "ä", "a" * 101],
)  # fmt: skip
def test_a_name_of_another_form_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(SecretUnavailable, match="use 1 to 100"):
        RESOLVER.resolve("acme", name)


@pytest.mark.parametrize("tenant", ["", "..", "../acme", "Acme", "acme/..", "acme\n"])
def test_what_is_no_tenant_is_refused(folder: Path, tenant: str) -> None:
    with pytest.raises(SecretUnavailable, match="is not the name of a tenant"):
        RESOLVER.resolve(tenant, "key")


@pytest.mark.parametrize("target", ["../globex/key", "../top", "/etc/passwd", "../acme2/key"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, target: str) -> None:
    (folder.parent / "acme2").mkdir()
    (folder.parent / "acme2" / "key").write_text("of-acme2")
    (folder / "link").symlink_to(target)
    with pytest.raises(SecretUnavailable, match="outside the tenant's folder") as caught:
        RESOLVER.resolve("acme", "link")
    assert str(folder) not in str(caught.value)


def test_links_inside_the_folder_are_followed_as_kubernetes_makes_them(folder: Path) -> None:
    (folder / "..2026_01").mkdir()
    (folder / "..2026_01" / "token").write_text("of-the-cluster")
    (folder / "..data").symlink_to("..2026_01")
    (folder / "token").symlink_to("..data/token")
    assert RESOLVER.resolve("acme", "token") == "of-the-cluster"


def test_a_tenant_s_folder_is_no_link_to_another_s(folder: Path) -> None:
    (folder.parent / "evil").symlink_to("globex")
    with pytest.raises(SecretUnavailable, match="outside the tenant's folder"):
        RESOLVER.resolve("evil", "key")


def test_what_is_no_file_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "dir").mkdir()
    for name in ("pipe", "dir"):
        with pytest.raises(SecretUnavailable, match=r"not a file|cannot be read"):
            RESOLVER.resolve("acme", name)


def test_a_missing_file_or_folder_is_told_without_its_path(folder: Path) -> None:
    for tenant in ("acme", "initech"):
        with pytest.raises(SecretUnavailable, match="no such file") as caught:
            RESOLVER.resolve(tenant, "none")
        assert str(folder.parent) not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"x" * (MAX_BYTES + 1), "8192"), (b"x" * 100_000, "8192"), (b"\xff" * 9, "UTF-8"), (b"abc\n", "fewer")],
)  # fmt: skip
def test_an_unfit_content_is_refused(folder: Path, content: bytes, reason: str) -> None:
    (folder / "unfit").write_bytes(content)
    with pytest.raises(SecretUnavailable, match=reason):
        RESOLVER.resolve("acme", "unfit")


def test_without_a_folder_the_setting_is_named(settings: Settings) -> None:
    settings.SECRETS_DIR = ""
    with pytest.raises(SecretUnavailable, match="ISOLANE_SECRETS_DIR"):
        RESOLVER.resolve("acme", "key")
