"""The limits that count: the tenant's in place of the platform's, then the stricter of them and the blueprint's."""

from executions.semantics.run_limits import effective_limits
from isolane.limits import RunLimits

DEFAULT = RunLimits(cpu=1, ram_mb=512, processes=64, disk_mb=100, open_files=256, output_kb=256)
NONE = RunLimits()


def test_without_a_word_the_platforms_count() -> None:
    assert effective_limits(default=DEFAULT, quota=NONE, blueprint=NONE) == DEFAULT


def test_a_tenant_may_have_more_or_less_than_the_default() -> None:
    quota = RunLimits(ram_mb=2048, processes=8)
    found = effective_limits(default=DEFAULT, quota=quota, blueprint=NONE)
    assert (found.ram_mb, found.processes, found.disk_mb) == (2048, 8, 100)


def test_a_blueprint_can_only_make_them_stricter() -> None:
    asked = RunLimits(cpu=0.5, ram_mb=1024, disk_mb=50, output_kb=9999)
    found = effective_limits(
        default=DEFAULT, quota=RunLimits(ram_mb=2048, disk_mb=20), blueprint=asked
    )
    assert found == RunLimits(
        cpu=0.5, ram_mb=1024, processes=64, disk_mb=20, open_files=256, output_kb=256
    )
