"""The program that forks."""

from bench.levels.forker import fork_one


def test_a_fork_tells_when_it_began() -> None:
    assert 0 < fork_one(0.0) < 5
