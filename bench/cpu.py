"""CPU time by process: on a busy machine it is steadier than elapsed time."""

from collections.abc import Mapping

import psutil


def spent(pids: Mapping[str, int]) -> dict[str, float]:
    """Return CPU seconds so far by name; workers of the platform are separate from their runners."""
    found: dict[str, float] = {}
    for name, pid in pids.items():
        root = psutil.Process(pid)
        own = root.cpu_times()
        below = own.children_user + own.children_system  # of children that have ended
        below += sum(_with_ended(process) for process in root.children(recursive=True))
        if name.startswith("isolane-worker"):
            found[name] = own.user + own.system
            found[name.replace("worker", "runners")] = below
        else:
            found[name] = own.user + own.system + below
    return found


def difference(
    before: Mapping[str, float], after: Mapping[str, float], runs: int
) -> dict[str, float]:
    """Return milliseconds per run; processes of one kind are added up."""
    result: dict[str, float] = {}
    for name, seconds in after.items():
        kind = name.rstrip("-0123456789")
        result[kind] = result.get(kind, 0) + (seconds - before.get(name, 0)) * 1000 / runs
    return {kind: round(value, 3) for kind, value in result.items()}


def _with_ended(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # its time counts for its parent by now
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
