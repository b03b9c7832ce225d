"""The failure of a step whose sandbox died."""

import signal

import pytest

from isolane.limits import RunLimits
from isolane.results import Code
from isolane.sandbox.report import ExitReport
from resources.runtimes.deaths import failure_of

LIMITS = RunLimits(ram_mb=64, cpu=0.5, seconds=10.0)
IN_TIME, OUT_OF_TIME = 4.0, 6.0  # CPU seconds


def code_of(
    report: ExitReport, *, limits: RunLimits = LIMITS, excess: Code | None = None
) -> Code | None:
    found = failure_of(report, limits, excess=excess)
    return found and found[0]


def test_a_limit_that_the_guard_or_a_cgroup_saw_has_its_code() -> None:
    assert code_of(ExitReport(excess="RAM_EXCEEDED")) is Code.RAM_EXCEEDED
    assert code_of(ExitReport(status=9), excess=Code.RAM_EXCEEDED) is Code.RAM_EXCEEDED


def test_a_sandbox_that_was_not_built_says_why() -> None:
    found = failure_of(ExitReport(reason="mounting proc"), LIMITS, excess=None)
    assert found == (Code.RESOURCE_ERROR, "the sandbox could not be built: mounting proc")


@pytest.mark.parametrize(
    ("number", "used", "code"),
    [
        (signal.SIGXCPU, OUT_OF_TIME, Code.TIMEOUT),
        (signal.SIGKILL, OUT_OF_TIME, Code.TIMEOUT),
        (signal.SIGKILL, IN_TIME, None),
        (signal.SIGSEGV, OUT_OF_TIME, None),
    ],
)
def test_the_end_of_its_cpu_time_is_a_timeout(number: int, used: float, code: Code | None) -> None:
    assert code_of(ExitReport(status=number, cpu_seconds=used)) is code


def test_it_names_the_limit() -> None:
    found = failure_of(ExitReport(status=signal.SIGXCPU), LIMITS, excess=None)
    assert found is not None
    assert "0.5 cores give the run (cpu, limits of the blueprint" in found[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGXCPU])
@pytest.mark.parametrize("limits", [RunLimits(), RunLimits(cpu=0.5), RunLimits(seconds=10.0)])
def test_without_a_limit_of_cpu_time_a_signal_is_a_signal(number: int, limits: RunLimits) -> None:
    assert code_of(ExitReport(status=number, cpu_seconds=OUT_OF_TIME), limits=limits) is None


def test_an_exit_is_no_limit() -> None:
    assert code_of(ExitReport(status=3 << 8)) is None
