"""Where in its author's file a failed step, or a run's outputs, say what they say. Pure."""

from dataclasses import dataclass
from pathlib import Path

from executions.blueprints.source import Source

OUTPUTS = "$.outputs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The lines of a blueprint's file, asked by the message of a failure."""

    file: Path
    source: Source

    def of_step(self, position: int, message: str) -> str:
        """file:line of the field that the message begins with, else of the step."""
        step = f"$.steps[{position}]"
        parameters = f"{step}.with"
        # A reference's refusal begins with its field, a node's with "node NAME, parameter FIELD".
        named = message.partition(": ")[0].rpartition(" ")[2]
        for path in (f"{step}.{named}", f"{parameters}.{named}"):
            found = self.source.nearest(path)
            if found not in {step, parameters}:
                return self._place(found)
        return self._place(step)

    def of_outputs(self, message: str) -> str:
        """file:line of the output that the message begins with; nothing if it is not about outputs."""
        found = self.source.nearest(f"$.{message.partition(': ')[0]}")
        return self._place(found) if found.startswith(OUTPUTS) else ""

    def _place(self, path: str) -> str:
        return f"{self.file}:{self.source.lines[path]}"
