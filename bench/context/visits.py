"""Who came to the customer's server, by its own log."""

import re
from dataclasses import dataclass
from pathlib import Path

_CAME = re.compile(r"connection authorized: .*\bapplication_name=exec_([0-9a-f-]{36})/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Visits:
    """Connections of the platform's runs, and how many different runs opened them."""

    connections: int
    runs: int

    def are_one_each(self, runs: int) -> bool:
        """Whether so many runs have opened exactly one each."""
        return self.connections == self.runs == runs


def found_in(text: str) -> Visits:
    """Count; the server writes the line before the client may ask anything."""
    came = _CAME.findall(text)
    return Visits(connections=len(came), runs=len(set(came)))


class Record:
    """The log from a certain moment on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._begin = log.stat().st_size

    def visits(self) -> Visits:
        """Those since then."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return found_in(file.read().decode("utf-8", "replace"))
