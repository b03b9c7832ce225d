"""foundation.redis_address: one form for all spellings of a server."""

import pytest

from foundation.redis_address import server_of


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("redis://:pw@Cache.example.com.:6380/1", ("cache.example.com", 6380)),
        ("rediss://cache.example.com", ("cache.example.com", 6379)),
        ("redis://127.0.0.1", ("localhost", 6379)),
        ("redis://[::1]:7", ("localhost", 7)),
        ("redis://[::ffff:10.0.0.1]", ("10.0.0.1", 6379)),
        ("redis://0.0.0.0", ("localhost", 6379)),
        ("unix:///run/broker.sock", None),
        ("redis+socket:///run/broker.sock", None),
        ("redis://cache:port", None),
    ],
)
def test_the_server_of_a_url(url: str, server: tuple[str, int] | None) -> None:
    assert server_of(url) == server
