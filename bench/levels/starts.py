"""The starts of runtimes, in a file of each process that asks for them: the others read it afterwards."""

import os
from pathlib import Path
from typing import NamedTuple

STARTS = "BENCH_STARTS"  # environment variable: their directory
_ENDING = ".starts"


class Start(NamedTuple):
    """One runtime."""

    ms: float  # from asking for it to its first step
    sandbox_ms: (
        float  # CPU time that only its cgroup counted: nobody waits for what ends with a guard
    )


def write_start(start: Start) -> None:
    """Note one runtime, once it is closed."""
    file = Path(os.environ[STARTS]) / f"{os.getpid()}{_ENDING}"
    with file.open("a", encoding="ascii") as written:
        written.write(f"{start.ms:.3f} {start.sandbox_ms:.3f}\n")


class Starts:
    """The starts from now on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begin = {file: file.stat().st_size for file in self._files()}

    def found(self) -> list[Start]:
        """Return all starts since then."""
        found: list[Start] = []
        for file in self._files():
            lines = file.read_bytes()[self._begin.get(file, 0) :].splitlines()
            found += [Start(*map(float, line.split())) for line in lines]
        return found

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{_ENDING}"))
