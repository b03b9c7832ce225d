"""The settings with timed backends."""

from django.conf import settings

from bench.levels.settings import RUNTIMES
from bench.levels.timed import TimedProcessBackend, TimedSharedBackend
from resources.runtimes.registry import build_backends


def test_the_platforms_levels_are_timed_and_otherwise_the_same() -> None:
    assert {level: type(backend) for level, backend in build_backends(RUNTIMES).items()} == {
        "shared": TimedSharedBackend,
        "process": TimedProcessBackend,
    }
    for level, options in settings.RUNTIMES.items():
        assert RUNTIMES[level]["OPTIONS"] == options["OPTIONS"]
