"""Keys that were valid lately; a bounded number."""

from tenants.logins.api_keys import KnownKeys


def test_those_used_longest_ago_are_forgotten() -> None:
    known = KnownKeys(2)
    known.add("one")
    known.add("two")
    assert known.has("one")
    known.add("three")
    assert [known.has(name) for name in ("one", "two", "three")] == [True, False, True]
    known.drop("one")
    known.drop("one")
    assert not known.has("one")
