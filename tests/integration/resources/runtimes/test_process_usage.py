"""resources.runtimes.process_usage: what the kernel shows of a process."""

import os
import subprocess
import sys

from resources.runtimes.process_usage import anonymous_mb, reset_peak, used_by

PROGRAM = """
import time
held = b"x" * (80 << 20)
del held
while time.process_time() < 0.3: pass
print(flush=True)
input()
"""


def test_time_and_peak_of_a_process_are_read_and_the_peak_is_reset() -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        used = used_by(process.pid)
        assert 0.25 < used.cpu_seconds < 3
        assert used.peak_ram_mb > 80
        assert 1 < anonymous_mb(process.pid) < 80
        reset_peak(process.pid)
        assert used_by(process.pid).peak_ram_mb < 80
        process.communicate("\n")
    assert used_by(process.pid).cpu_seconds == anonymous_mb(process.pid) == 0


def test_this_process_has_used_something() -> None:
    assert used_by(os.getpid()).cpu_seconds > 0
    assert anonymous_mb(os.getpid()) > 10
