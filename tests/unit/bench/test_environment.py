"""Environment variables of the contenders."""

from bench.environment import clean, durable, plain

REDIS = "unix://:secret@/run/valkey.sock"


def test_nothing_points_at_other_servers() -> None:
    given = {"PATH": "/bin", "DATABASE_URL": "x", "REDIS_URL_FILE": "y", "ISOLANE_HOME": "z"}
    assert clean(given) == {"PATH": "/bin"}


def test_no_two_contenders_share_a_database_of_the_broker() -> None:
    urls = [
        plain(REDIS)["BENCH_REDIS_URL"],
        plain(REDIS)["BENCH_RESULT_REDIS_URL"],
        durable(REDIS, "")["BENCH_REDIS_URL"],
        REDIS,  # the platform's
    ]
    assert len(set(urls)) == len(urls)
    assert (
        plain(REDIS)["BENCH_BROKER_URL"] == "redis+socket://:secret@/run/valkey.sock?virtual_host=1"
    )
    assert plain(REDIS)["BENCH_REDIS_URL"] == f"{REDIS}?db=1"
