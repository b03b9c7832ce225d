"""The control: use as much CPU time as an attacker did, and send nothing.

Timing: for the given seconds.
Model: sync, in a process of its own.
Guarantee: best-effort; on a full machine it gets the share that an attacker would have got.
Failure: none is expected.
"""

import time

SPIN_SECONDS = 0.002


def burn(share: float, seconds: float) -> None:
    """Use this share of one core."""
    began, used_before = time.monotonic(), time.process_time()
    while (elapsed := time.monotonic() - began) < seconds:
        if time.process_time() - used_before >= share * elapsed:
            time.sleep(SPIN_SECONDS)
            continue
        until = time.process_time() + SPIN_SECONDS
        while time.process_time() < until:
            pass
