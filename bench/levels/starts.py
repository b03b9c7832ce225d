"""The starts of runtimes, in a file of each process that asks for them: the others read it afterwards."""

import os
from pathlib import Path

STARTS = "BENCH_STARTS"  # environment variable: their directory
_ENDING = ".starts"


def write_start(seconds: float) -> None:
    """Note the seconds from asking for a runtime to its first step."""
    file = Path(os.environ[STARTS]) / f"{os.getpid()}{_ENDING}"
    with file.open("a", encoding="ascii") as written:
        written.write(f"{seconds:.6f}\n")


class Starts:
    """The starts from now on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begin = {file: file.stat().st_size for file in self._files()}

    def milliseconds(self) -> list[float]:
        """Return all starts since then."""
        found: list[float] = []
        for file in self._files():
            lines = file.read_bytes()[self._begin.get(file, 0) :].splitlines()
            found += [float(line) * 1000 for line in lines]
        return found

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{_ENDING}"))
