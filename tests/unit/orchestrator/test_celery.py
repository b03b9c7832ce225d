"""A worker that is pointed at nothing says so and ends."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_worker_without_a_platform_ends_at_once(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "orchestrator", "worker"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "ISOLANE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "No platform runs here: start one with make up, or set DATABASE_URL and REDIS_URL.\n"
    )
