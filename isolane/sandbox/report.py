"""The last message about a runner, from its zygote or guard to the worker. Pure."""

import json
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ExitReport:
    """The end of a runner, and what it used."""

    status: int | None = None  # as waitpid returns it; None if it never ran
    cpu_seconds: float = 0.0
    peak_ram_mb: float = 0.0
    excess: str = ""  # the code of the limit that ended it
    lapsed: bool = False  # its keepalive ran out, or its worker is gone
    step: str = ""  # of the set-up, that failed
    errno: int = 0
    reason: str = ""  # of that failure
    final: bool = False  # from the zygote: nothing follows

    def encode(self) -> bytes:
        """Return it as a message."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}).encode()

    @classmethod
    def decode(cls, message: bytes) -> "ExitReport":
        """Return it from a message."""
        fields: dict[str, Any] = json.loads(message)
        return cls(**fields)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, or the negative number of the signal; None if it never ran."""
        return None if self.status is None else os.waitstatus_to_exitcode(self.status)
