"""`python -m bench.levels.forker PACKAGE…`: imports what a zygote imports, then forks processes that end at once.

Timing: a process of its own; a line `FORKS SECONDS` on its standard input, one with the starts as answer.
Model: one thread, one fork after the other; each child lives so many seconds.
Guarantee: ends with its standard input.
Failure: bubble.
"""

import gc
import os
import struct
import sys
import time

import isolane.zygote  # noqa: F401 - for its size
from isolane.discovery import node_sources
from isolane.node import default_registry
from isolane.preload import preload

_TIME = struct.Struct("d")


def fork_one(hold_s: float) -> float:
    """Fork a process that only tells the time; return the seconds that it took to begin."""
    reading, writing = os.pipe()
    asked_at = time.monotonic()
    pid = os.fork()  # noqa: TID251 - one thread, and meant to be a copy
    if pid == 0:
        os.write(writing, _TIME.pack(time.monotonic()))
        time.sleep(hold_s)
        os._exit(0)
    os.close(writing)
    (began,) = _TIME.unpack(os.read(reading, _TIME.size))
    os.close(reading)
    os.waitpid(pid, 0)
    return float(began - asked_at)


def main(packages: list[str]) -> None:
    """Answer until the end of the input."""
    preload(node_sources(default_registry, packages=packages, tasks=[]), late=())
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        forks, hold_s = line.split()
        starts = [fork_one(float(hold_s)) for _ in range(int(forks))]
        sys.stdout.write(" ".join(f"{start:.6f}" for start in starts) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
