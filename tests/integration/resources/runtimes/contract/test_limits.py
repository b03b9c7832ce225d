"""The limits of a run at every level, and what it used of them."""

import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from tests.integration.resources.runtimes.conftest import Driver
from tests.integration.resources.runtimes.contract.conftest import Start
from tests.integration.resources.runtimes.contract.levels import Clause

# The interpreter itself needs some of each.
LIMITS = RunLimits(
    cpu=1.0, ram_mb=128, processes=16, disk_mb=8, open_files=64, output_kb=64, seconds=60.0
)
EXCESSES = [
    ("ram", 192, Code.RAM_EXCEEDED),
    ("disk", 16, Code.DISK_FULL),
    ("processes", 40, Code.PROCESS_LIMIT),
    ("files", 100, Code.UNKNOWN_ERROR),
]


@pytest.mark.clause(Clause.LIMITS)
@pytest.mark.parametrize(("what", "amount", "code"), EXCESSES)
def test_an_excess_is_refused_with_a_code_of_its_own(
    start: Start, what: str, amount: int, code: Code
) -> None:
    result = Driver(start(limits=LIMITS)).run(f"contract.use_{what}", {"amount": amount})
    assert (result.status, result.code) == ("failed", code), result.message


@pytest.mark.parametrize(
    ("what", "amount"), [("ram", 32), ("disk", 4), ("processes", 4), ("files", 20)]
)
def test_within_its_limits_a_step_is_not_disturbed(start: Start, what: str, amount: int) -> None:
    runtime = start(limits=LIMITS)
    Driver(runtime).output(f"contract.use_{what}", {"amount": amount})
    assert runtime.close(5) == ()


def test_what_a_run_used_is_known_when_it_is_closed(start: Start) -> None:
    runtime = start(limits=RunLimits(ram_mb=512, processes=64))
    Driver(runtime).output("contract.compute", {"cpu_seconds": 0.1, "ram_mb": 60})
    runtime.close(5)
    assert 0.17 < runtime.usage.cpu_seconds < 5  # its own, and that of the program which it started
    assert 60 < runtime.usage.peak_ram_mb < 512


def test_what_an_earlier_run_used_is_not_counted_again(start: Start) -> None:
    first = start(limits=RunLimits(ram_mb=512, processes=64))
    Driver(first).output("contract.compute", {"cpu_seconds": 0.1, "ram_mb": 60})
    first.close(5)
    second = start(limits=RunLimits(ram_mb=512, processes=64))
    Driver(second).output("test.identity")
    second.close(5)
    assert second.usage.cpu_seconds < first.usage.cpu_seconds  # with that it would be more
    assert second.usage.peak_ram_mb < first.usage.peak_ram_mb - 30


def test_so_is_what_a_run_used_that_was_killed(start: Start) -> None:
    runtime = start(limits=RunLimits(ram_mb=512, processes=64))
    Driver(runtime).output("contract.compute", {"cpu_seconds": 0.1, "ram_mb": 60})
    assert Driver(runtime).run("test.sleep", {"seconds": 60.0}, seconds=0.1).code is Code.TIMEOUT
    runtime.close(5)
    assert 0.17 < runtime.usage.cpu_seconds < 5
