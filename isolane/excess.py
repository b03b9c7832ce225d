"""Exceptions of a step that mean that its run has reached a limit. Pure."""

import errno
import traceback

from isolane.limits import RunLimits
from isolane.results import Code, StepError, StepResult

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
# A full socket raises the same error as a refused fork; these functions only start processes.
_FORKING = frozenset({"fork", "forkpty", "fork_exec", "_fork_exec", "posix_spawn", "posix_spawnp"})
_NO_THREAD = "can't start new thread"
_SET_BY = {
    Code.RAM_EXCEEDED: "ram_mb",
    Code.PROCESS_LIMIT: "processes",
    Code.DISK_FULL: "disk_mb",
}


def failure_within(
    limits: RunLimits, error: BaseException, *, step: str, attempt: int, node: str
) -> StepResult:
    """Build the failure of a step whose run has limits: one that comes from a limit has its code."""
    if isinstance(error, MemoryError):
        # The frames hold what has filled the memory, and building a result needs some.
        traceback.clear_frames(error.__traceback__)
    result = StepResult.from_error(error, step=step, attempt=attempt, node=node)
    code = code_of(error)
    if code is None or getattr(limits, _SET_BY[code]) is None:
        return result
    return StepResult.failed(
        step=step,
        attempt=attempt,
        code=code,
        message=f"{result.message}: {sentence_of(code, limits)}",
        cause=result.cause,
        trace=result.trace,
    )


def code_of(error: BaseException) -> Code | None:
    """Return the code of the limit that makes the kernel or Python raise this; None if no limit does."""
    if isinstance(error, StepError):  # its author has chosen a code
        return None
    if isinstance(error, MemoryError):
        return Code.RAM_EXCEEDED
    if isinstance(error, RuntimeError) and error.args[:1] == (_NO_THREAD,):
        return Code.PROCESS_LIMIT
    return _code_of_number(error) if isinstance(error, OSError) else None


def _code_of_number(error: OSError) -> Code | None:
    if error.errno in _NO_ROOM:
        return Code.DISK_FULL
    if error.errno == errno.ENOMEM:
        return Code.RAM_EXCEEDED
    if error.errno == errno.EAGAIN and _names_called(error) & _FORKING:
        return Code.PROCESS_LIMIT
    return None


def _names_called(error: BaseException) -> set[str]:
    """Return the names that the function uses in which the error was raised."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return set() if last is None else set(last.tb_frame.f_code.co_names)


def sentence_of(code: Code, limits: RunLimits) -> str:
    """Return what was exceeded, and where the limit is set."""
    what = {
        Code.RAM_EXCEEDED: f"the run used more RAM than its limit of {limits.ram_mb} MB",
        Code.PROCESS_LIMIT: f"the run started more than {limits.processes} processes and threads",
        Code.DISK_FULL: f"the run wrote more files than its limit of {limits.disk_mb} MB",
    }
    name = f"{_SET_BY[code]}, " if code in _SET_BY else ""
    return f"{what.get(code, code)} ({name}limits of the blueprint and of the tenant's quota)"
