"""The chaos trial for a minute: workers, their children, Redis and PostgreSQL fail in turn."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from resources.runtimes.base import Availability
from tests.plugin import ROOT
from trials.chaos.plan import FaultKind

SECONDS, SEED, RUNS_AT_ONCE, WORKERS = 60, 113, 50, 3
LIMIT_SECONDS = 300.0  # a minute of faults, with start and end on a busy machine
STOP_SECONDS = 60.0


@pytest.mark.timeout(LIMIT_SECONDS + STOP_SECONDS + 10)
def test_every_run_ends_as_its_guarantees_promise(
    tmp_path: Path, process_level: Availability
) -> None:
    """Run it in a process with servers of its own: those of the tests must not be restarted."""
    sandboxes = process_level.ok
    status, report = _run_trial(tmp_path, "--untrusted" if sandboxes else "--no-untrusted")
    assert status == 0, report
    assert "lost 0, completed step ran again 0, slots held at the end 0, processes left 0" in report
    # There were enough faults and enough runs.
    assert _number(report, "runs:") > RUNS_AT_ONCE
    levels = {level: _number(report, f"{level}$", before=True) for level in ("process", "shared")}
    assert levels["shared"] > 0
    assert (levels["process"] > 0) == sandboxes
    for kind in FaultKind:
        assert _number(report, f"{kind}$", before=True) > 0, report
    assert _number(report, FaultKind.FLUSH, before=True) == 2
    assert _number(report, "placement.lost", before=True) > 0


def _run_trial(logs: Path, *options: str) -> tuple[int, str]:
    command = [
        *(sys.executable, "-m", "trials.chaos"),
        *("--seconds", str(SECONDS)),
        *("--seed", str(SEED)),
        *("--runs-at-once", str(RUNS_AT_ONCE)),
        *("--workers", str(WORKERS)),
        *("--logs", str(logs)),
        *options,
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            report, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()  # it stops its workers and servers
            report, _ = process.communicate(timeout=STOP_SECONDS)
    return process.returncode, f"{report}\nthe logs are in {logs}"


def _number(report: str, name: str, *, before: bool = False) -> int:
    """Return the number before or after a name at the beginning of a line; 0 if there is none."""
    found = re.search(
        rf"^ +(\d+) {name}" if before else rf"^{name} (\d+)", report, flags=re.MULTILINE
    )
    return int(found[1]) if found else 0
