"""Map a failure to file:line in the blueprint's source. Pure."""

from dataclasses import dataclass
from pathlib import Path

from executions.blueprints.source import Source

OUTPUTS = "$.outputs"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLocations:
    """The lines of a blueprint's file, found by the message of a failure."""

    file: Path
    source: Source

    def of_step(self, position: int, message: str) -> str:
        """Return file:line of the field that the message begins with, else of the step."""
        step = f"$.steps[{position}]"
        parameters = f"{step}.with"
        # An error of a reference begins with its field, that of a node with "node NAME, parameter FIELD".
        named = message.partition(": ")[0].rpartition(" ")[2]
        for path in (f"{step}.{named}", f"{parameters}.{named}"):
            found = self.source.nearest(path)
            if found not in {step, parameters}:
                return self._location(found)
        return self._location(step)

    def of_outputs(self, message: str) -> str:
        """Return file:line of the output that the message begins with; empty if it is not about outputs."""
        found = self.source.nearest(f"$.{message.partition(': ')[0]}")
        return self._location(found) if found.startswith(OUTPUTS) else ""

    def _location(self, path: str) -> str:
        return f"{self.file}:{self.source.lines[path]}"
