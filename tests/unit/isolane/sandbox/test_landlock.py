"""The rights that each version of Landlock knows."""

import pytest

from isolane.sandbox import landlock

EXECUTE, REFER, TRUNCATE, IOCTL_DEV, RESOLVE_UNIX = 1 << 0, 1 << 13, 1 << 14, 1 << 15, 1 << 16


@pytest.mark.parametrize(
    ("version", "newest"),
    [
        (1, 1 << 12),
        (2, REFER),
        (3, TRUNCATE),
        (4, TRUNCATE),
        (5, IOCTL_DEV),
        (7, IOCTL_DEV),
        (9, RESOLVE_UNIX),
        (99, RESOLVE_UNIX),
    ],
)
def test_all_rights_up_to_the_newest_of_an_abi_are_handled(version: int, newest: int) -> None:
    assert landlock._rights(version) == 2 * newest - 1


def test_without_landlock_there_are_none() -> None:
    assert landlock._rights(0) == 0


def test_elsewhere_than_on_linux_there_is_no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert landlock.abi() == 0
