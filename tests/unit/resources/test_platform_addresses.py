"""resources.platform_addresses: the platform's servers, whatever way they are written."""

import pytest

from resources.platform_addresses import platform_addresses


@pytest.mark.parametrize(
    ("database", "places"),
    [
        ({"HOST": "DB.internal.", "PORT": "6000"}, {("db.internal", 6000)}),
        ({"HOST": "db", "PORT": ""}, {("db", 5432)}),
        ({"HOST": "/run/postgresql", "PORT": "5433"}, {("127.0.0.1", 5433)}),
        ({"HOST": "", "PORT": ""}, {("127.0.0.1", 5432)}),
        ({"HOST": "a,b", "PORT": "1,2"}, {("a", 1), ("b", 2)}),
        ({"HOST": "a,/run", "PORT": "7"}, {("a", 7), ("127.0.0.1", 7)}),
        (
            {"HOST": "db", "PORT": "7", "OPTIONS": {"hostaddr": "10.0.0.1"}},
            {("db", 7), ("10.0.0.1", 7)},
        ),
        ({"HOST": "", "OPTIONS": {"hostaddr": "10.0.0.1"}}, {("10.0.0.1", 5432)}),
    ],
)
def test_postgresql(database: dict[str, object], places: set[tuple[str, int]]) -> None:
    assert platform_addresses([database], []) == places


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://:x@Broker:7000/0", ("broker", 7000)),
        ("rediss://broker", ("broker", 6379)),
        ("redis://[::1]:7000", ("::1", 7000)),
        ("unix://:x@/run/valkey.sock", ("127.0.0.1", 6379)),
    ],
)
def test_redis(url: str, place: tuple[str, int]) -> None:
    assert platform_addresses([], [url, ""]) == {place}
