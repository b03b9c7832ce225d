"""Waits are known for a moment, and for a bounded number of names."""

from tenants.logins.waiting import Waiting


def test_a_wait_is_known_for_a_moment() -> None:
    now = [100.0]
    waiting = Waiting(clock=lambda: now[0])
    waiting.note("long", 30_000)
    waiting.note("short", 500)
    waiting.note("none", 0)
    assert [waiting.left(name) for name in ("long", "short", "none", "other")] == [
        30_000,
        500,
        0,
        0,
    ]
    now[0] += 0.9
    assert [waiting.left(name) for name in ("long", "short")] == [29_100, 0]
    now[0] += 0.1
    assert waiting.left("long") == 0  # may have been taken back


def test_no_more_are_kept_than_allowed() -> None:
    waiting = Waiting(clock=lambda: 100.0, most=2)
    for name in ("one", "two", "three"):
        waiting.note(name, 1_000)
    assert [waiting.left(name) for name in ("one", "two", "three")] == [0, 1_000, 1_000]
