"""The control: as much processor time as an attacker took, and nothing sent.

Timing: for the given seconds. Model: sync, in a process of its own. Guarantee: best-effort; on a full machine it gets
what an attacker would have got. Failure: none is expected.
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
