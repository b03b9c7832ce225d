"""Count the connections to the customer's server in its log."""

import re
from dataclasses import dataclass
from pathlib import Path

_AUTHORIZED = re.compile(r"connection authorized: .*\bapplication_name=exec_([0-9a-f-]{36})/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Visits:
    """The number of connections of the platform's runs, and of different runs that opened them."""

    connections: int
    runs: int

    def are_one_each(self, runs: int) -> bool:
        """Return True if this many runs have opened exactly one each."""
        return self.connections == self.runs == runs


def found_in(text: str) -> Visits:
    """Count the connections in a log; the server writes a line before the client can query."""
    opened_by = _AUTHORIZED.findall(text)
    return Visits(connections=len(opened_by), runs=len(set(opened_by)))


class Record:
    """The log from now on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._begin = log.stat().st_size

    def visits(self) -> Visits:
        """Count the connections since then."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return found_in(file.read().decode("utf-8", "replace"))
