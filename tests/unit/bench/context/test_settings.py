"""The bench-only switch."""

from django.conf import settings

from bench.context.bare import BareBackend
from bench.context.chains import OFF_LEVEL
from bench.context.settings import RUNTIMES
from resources.runtimes.registry import build_backends


def test_the_platform_as_it_is_and_one_more_level() -> None:
    assert RUNTIMES["shared"] == settings.RUNTIMES["shared"]
    assert RUNTIMES[OFF_LEVEL]["OPTIONS"] == RUNTIMES["shared"]["OPTIONS"]
    assert type(build_backends(RUNTIMES)[OFF_LEVEL]) is BareBackend


def test_the_switch_is_in_no_setting_of_the_platform() -> None:
    assert "bench" not in str(settings.RUNTIMES)
