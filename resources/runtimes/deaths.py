"""The failure of a step whose sandbox died, from what is known of its end. Pure."""

import signal

from isolane.excess import sentence_of
from isolane.limits import RunLimits
from isolane.results import Code
from isolane.sandbox.report import ExitReport

_OUT_OF_TIME = (
    "a process used more CPU time than {:g} cores give the run"
    " (cpu, limits of the blueprint and of the tenant's quota)"
)


def failure_of(
    report: ExitReport, limits: RunLimits, *, excess: Code | None
) -> tuple[Code, str] | None:
    """Return the code and sentence of a limit that ended it; None if it died by itself."""
    code = Code(report.excess) if report.excess else excess
    if code is not None:
        return code, sentence_of(code, limits)
    if _is_out_of_time(report, limits):
        return Code.TIMEOUT, _OUT_OF_TIME.format(limits.cpu)
    if report.reason:
        return Code.RESOURCE_ERROR, f"the sandbox could not be built: {report.reason}"
    return None


def _is_out_of_time(report: ExitReport, limits: RunLimits) -> bool:
    """Say whether a limit of CPU time ended the runner; one that ignores SIGXCPU is killed a second later."""
    if limits.cpu is None or limits.seconds is None:  # then no such limit was set
        return False
    if report.exit_code != -signal.SIGKILL:
        return report.exit_code == -signal.SIGXCPU
    return report.cpu_seconds > limits.cpu * limits.seconds
