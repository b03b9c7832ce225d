"""Environment variables of each contender's processes. Pure."""

from collections.abc import Mapping

OURS = ("DATABASE_", "REDIS_", "ISOLANE_", "FLOWER_", "CELERY_", "DJANGO_", "BENCH_")
# Databases of the one Valkey; 0 is the platform's.
PLAIN, PLAIN_RESULTS, DURABLE = 1, 2, 3
# Directory for the samples of a profiled worker, and how often it writes them.
PROFILES = "BENCH_PROFILES"
PROFILES_PERIOD = 1.0  # seconds


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that could point at other servers."""
    return {name: value for name, value in environ.items() if not name.startswith(OURS)}


def redis_url(unix_url: str, database: int) -> str:
    """Return the URL of one database, in the form of redis-py."""
    return f"{unix_url}?db={database}"


def broker_url(unix_url: str, database: int) -> str:
    """Return the URL of one database, in the form of Kombu."""
    return f"{unix_url.replace('unix://', 'redis+socket://', 1)}?virtual_host={database}"


def plain(redis: str) -> dict[str, str]:
    """Return the variables of the plain chain: a broker and a result backend."""
    return {
        "BENCH_REDIS_URL": redis_url(redis, PLAIN),
        "BENCH_BROKER_URL": broker_url(redis, PLAIN),
        "BENCH_RESULT_URL": broker_url(redis, PLAIN_RESULTS),
        "BENCH_RESULT_REDIS_URL": redis_url(redis, PLAIN_RESULTS),
    }


def durable(redis: str, database: str) -> dict[str, str]:
    """Return the variables of the durable chain: a broker and a database."""
    return {
        "BENCH_REDIS_URL": redis_url(redis, DURABLE),
        "BENCH_BROKER_URL": broker_url(redis, DURABLE),
        "BENCH_DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "bench.contenders.durable.settings",
    }


def platform(
    *, redis: str, login: str, owner: str, secret_key: str, encryption_key: str
) -> dict[str, str]:
    """Return the variables of the platform as `make up` sets them, with the built-in nodes only."""
    return {
        "ISOLANE_EMBEDDED": "1",
        "DATABASE_URL": login,
        "DATABASE_OWNER_URL": owner,
        "REDIS_URL": redis,
        "SECRET_KEY": secret_key,
        "ENCRYPTION_KEYS": encryption_key,
        "BASE_HOST": "localhost",
        "DJANGO_SETTINGS_MODULE": "orchestrator.settings",
    }
