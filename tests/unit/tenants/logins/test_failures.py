"""Limits on audit entries, and log lines that cannot be broken."""

from tenants.logins.failures import PerMinute, printable


def test_so_many_a_minute_and_what_was_held_back_is_counted() -> None:
    now = [0.0]
    entries = PerMinute(2, clock=lambda: now[0])
    assert [entries.take() for _ in range(5)] == [0, 0, None, None, None]
    now[0] = 60
    assert [entries.take() for _ in range(3)] == [3, 0, None]


def test_a_name_is_short_and_printable() -> None:
    assert printable("ada") == "ada"
    assert printable("a\nb\x00c\x1b[31m\ud800") == "a�b�c�[31m�"
    assert len(printable("x" * 10_000)) == 150
