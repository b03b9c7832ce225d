"""The settings with a level without context."""

from django.conf import settings

from bench.context.bare import BareBackend
from bench.context.chains import OFF_LEVEL
from bench.context.settings import RUNTIMES
from resources.runtimes.registry import build_backends


def test_the_settings_of_the_platform_with_one_more_level() -> None:
    assert RUNTIMES["shared"] == settings.RUNTIMES["shared"]
    assert RUNTIMES[OFF_LEVEL]["OPTIONS"] == RUNTIMES["shared"]["OPTIONS"]
    assert type(build_backends(RUNTIMES)[OFF_LEVEL]) is BareBackend


def test_the_level_is_not_in_the_settings_of_the_platform() -> None:
    assert "bench" not in str(settings.RUNTIMES)
